package ledger_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/dpwatch/dpwatch/internal/ledger"
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
		if err := e.Save(b.Context(), a); err != nil {
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
