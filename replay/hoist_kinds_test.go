package replay_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
	"github.com/dpwatch/dpwatch/replay"
)

// TestSessionsCompare: the tables of a session that is opened later are compared with those of the first one. If they
// differ, hoisting ends, and the stream says that the hoisted rounds before are no evidence.
func TestSessionsCompare(t *testing.T) {
	t.Parallel()
	dsn := hoistShadow(t)
	s := replay.Statement{Worlds: worldsOf(`SELECT sum(x) + noise() FROM %s.t`), Hoist: replay.ForceHoisting()}
	run, err := player(t, options(dsn)).Start(s, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	if _, err := run.Rounds(t.Context(), 120); err != nil {
		t.Fatal(err)
	}
	run.Close()
	pgtest.Exec(t, dsn, "UPDATE d1.t SET x = x + 1e-9 WHERE id = 7")
	for batch, err := range run.Stream(t.Context(), 20) {
		if err != nil || len(batch.Hoisted) > 0 || len(batch.Rounds) != 20 || batch.Whole || !strings.Contains(batch.Broken, "the rows of a part on D1 differ") {
			t.Errorf("%+v, %v; want whole rounds, and the difference", batch, err)
		}
		break
	}
	if r := s.Hoist.Report(); r.Hoisted || !strings.Contains(r.Reason, "the rows of a part on D1 differ") {
		t.Errorf("%+v; want the difference", r)
	}
}

// TestHalfOfTheTime: while a query is hoisted, both kinds of rounds run, and each takes half of the time: here a whole
// round takes ten times as long as a hoisted one, by the test's clock. The first hundred rounds are whole, and whole
// ones alone run when the evidence takes no others.
func TestHalfOfTheTime(t *testing.T) {
	t.Parallel()
	dsn := hoistShadow(t)
	s := replay.Statement{Worlds: worldsOf(`SELECT sum(x) + noise() FROM %s.t`), Hoist: replay.TimedHoisting(func(hoisted bool) time.Duration {
		if hoisted {
			return time.Millisecond
		}
		return 10 * time.Millisecond
	})}
	run, err := player(t, options(dsn)).Start(s, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	var all []replay.Batch
	count := func(kind func(replay.Batch) []replay.Round) (n int) {
		for _, b := range all {
			n += len(kind(b))
		}
		return n
	}
	whole := func(b replay.Batch) []replay.Round { return b.Rounds }
	hoisted := func(b replay.Batch) []replay.Round { return b.Hoisted }
	for batch, err := range run.Stream(t.Context(), 25) {
		if err != nil {
			t.Fatal(err)
		}
		if all = append(all, batch); batch.Whole || batch.Broken != "" {
			t.Fatalf("%+v", batch)
		}
		if count(hoisted) >= 2000 {
			break
		}
	}
	first := slices.IndexFunc(all, func(b replay.Batch) bool { return len(b.Hoisted) > 0 })
	rest := all[first+1:]
	all = all[:first]
	if n := count(whole); n < 75 {
		t.Errorf("%d whole rounds before the first batch with hoisted ones, want 75 or more", n)
	}
	all = rest
	if w, h := count(whole), count(hoisted); h < 5*w || h > 20*w {
		t.Errorf("%d whole and %d hoisted rounds, want one to ten", w, h)
	}
	all = nil
	run.Choose(replay.Choice{Whole: true})
	for batch, err := range run.Stream(t.Context(), 25) {
		if err != nil || len(batch.Hoisted) > 0 || len(batch.Rounds) == 0 {
			t.Errorf("%d hoisted rounds, %v; want whole ones alone", len(batch.Hoisted), err)
		}
		break
	}
}
