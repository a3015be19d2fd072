package ledger_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/dpwatch/dpwatch/internal/ledger"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
)

// BenchmarkSave writes what a turn of an audit writes, with a state of 40 kB: typical of a number after 1,000 pairs of
// trials.
func BenchmarkSave(b *testing.B) {
	_, o := open(b)
	e := acquire(b, o, "e")
	state := make([]byte, 40_000)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range state {
		state[i] = byte(r.Uint32())
	}
	a := ledger.Audit{Query: query(), State: "running", DataEpoch: "1", Trials: 1000}
	for b.Loop() {
		a.Progress = ledger.Seal(state)
		if err := e.Audits.Save(b.Context(), a); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRecord writes executions of 1,000 queries that were seen before. The figure is for one of them.
func BenchmarkRecord(b *testing.B) {
	_, o := open(b)
	e := acquire(b, o, "e")
	const queries = 1000
	one := ledger.Batch{Term: e.Term()}
	for i := range queries {
		q := query()
		q.Key = fmt.Sprint(i)
		one.Sightings = append(one.Sightings, ledger.Sighting{Query: q, User: "ann", Database: "db", Application: "psql", Executions: 3})
	}
	for n := 0; b.Loop(); n++ {
		if n%queries > 0 {
			continue
		}
		one.Seq++
		if err := e.Record(b.Context(), one); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkTurn gives a turn to a worker, which ends it without evidence, reads its outcome and removes it.
func BenchmarkTurn(b *testing.B) {
	o := ledger.Options{DSN: pgtest.Database(b), Connections: 4}
	if _, _, err := ledger.Migrate(b.Context(), o); err != nil {
		b.Fatal(err)
	}
	l, err := ledger.Open(b.Context(), o)
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	e := acquire(b, o, "e")
	ctx, stop := context.WithCancel(b.Context())
	done := make(chan error, 1)
	go func() {
		done <- l.Workers.Work(ctx, workOptions("w", "e", func(ctx context.Context, turn *ledger.Turn) error {
			return turn.Complete(ctx, nil, ledger.Outcome{})
		}))
	}()
	for b.Loop() {
		id, err := e.Turns.Give(b.Context(), ledger.TurnArgs{Key: "k"})
		if err != nil {
			b.Fatal(err)
		}
		for turns := []ledger.GivenTurn(nil); len(turns) == 0 || !turns[0].Done; {
			e.WaitForTurn(b.Context(), time.Second)
			if turns, err = e.Turns.Current(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
		if err := e.Turns.Forget(b.Context(), id); err != nil {
			b.Fatal(err)
		}
	}
	stop()
	if err := <-done; err != nil {
		b.Error(err)
	}
}
