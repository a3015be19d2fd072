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

// TestOpeningRounds: for every 16 rounds of the whole query one more has trials that are the first of their sessions;
// hoisted rounds have none.
func TestOpeningRounds(t *testing.T) {
	t.Parallel()
	dsn := hoistShadow(t, `CREATE FUNCTION nth() RETURNS int LANGUAGE plpgsql VOLATILE AS $$
		BEGIN
			PERFORM set_config('test.n', (coalesce(nullif(current_setting('test.n', true), ''), '0')::int + 1)::text, false);
			RETURN current_setting('test.n')::int;
		END $$`)
	for name, hoist := range map[string]*replay.Hoisting{"whole": nil, "hoisted": replay.ForceHoisting()} {
		s := replay.Statement{Worlds: worldsOf(`SELECT sum(x) + 0 * noise() AS s, nth() AS n FROM %s.t`), Hoist: hoist}
		run, err := player(t, options(dsn)).Start(s, 1)
		if err != nil {
			t.Fatal(err)
		}
		defer run.Close()
		run.Choose(replay.Choice{Opening: true})
		whole, opening, hoisted := 0, 0, 0
		for batch, err := range run.Stream(t.Context(), 50) {
			if err != nil {
				t.Fatal(err)
			}
			for _, round := range batch.Opening {
				for world, o := range round {
					if o.Failed() || o.Rows[0][1].Num != 1 {
						t.Fatalf("%s: an opening trial on D%d is %+v, want the first of its session", name, world, o)
					}
				}
			}
			whole, opening, hoisted = whole+len(batch.Rounds), opening+len(batch.Opening), hoisted+len(batch.Hoisted)
			if whole+hoisted >= 500 {
				break
			}
			run.Choose(replay.Choice{Opening: true})
		}
		if opening != whole/16 || hoist != nil && (hoisted == 0 || whole != 100) {
			t.Errorf("%s: %d whole rounds, %d hoisted, %d opening", name, whole, hoisted, opening)
		}
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
