package replay_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
	"github.com/dpwatch/dpwatch/replay"
)

// A statement that cannot be prepared in one world fails there, trial by trial, and nowhere else.
func TestWrongInOneWorld(t *testing.T) {
	t.Parallel()
	run, err := player(t, options(shadow(t))).Start(replay.Statement{Worlds: []string{
		"SELECT sum(income) FROM d0.people", "SELECT sum(grp) FROM d1.people", "SELECT sum(id) FROM d1.people",
	}}, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	if _, err := run.Rounds(t.Context(), 3); err == nil || !strings.Contains(err.Error(), "lacks a function") {
		t.Errorf("sum(text): %v, want the missing function told", err)
	}
	run, err = player(t, options(shadow(t))).Start(replay.Statement{Worlds: []string{
		"SELECT sum(income) FROM d0.people", "SELECT sum(gone) FROM d1.people", "SELECT sum(id) FROM d1.people",
	}}, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	got, err := run.Rounds(t.Context(), 3)
	if err != nil {
		t.Fatal(err)
	}
	for _, round := range got {
		if round[0].Failed() || round[1].SQLState != "42703" || round[2].Rows[0][0].Num != 3 {
			t.Errorf("round %+v, want a failure in the second world alone", round)
		}
	}
}

// The planner calls a random function that is declared IMMUTABLE; then plans are not reused.
func TestDrawsWhenPlanned(t *testing.T) {
	t.Parallel()
	dsn := shadow(t)
	pgtest.Exec(t, dsn, "CREATE FUNCTION noise() RETURNS float8 LANGUAGE plpgsql IMMUTABLE AS 'BEGIN RETURN random(); END'")
	got, err := rounds(t, player(t, options(dsn)), replay.Statement{}, "SELECT count(*) + noise() FROM %s.people", 20)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[float64]bool{}
	for _, round := range got {
		seen[round[0].Rows[0][0].Num] = true
	}
	if len(seen) != 20 {
		t.Errorf("%d different results of 20 trials: a plan was kept", len(seen))
	}
}

// If copies are created again while sessions reuse plans, the error is transient and not an outcome.
func TestCopiesMadeAgain(t *testing.T) {
	t.Parallel()
	dsn := shadow(t)
	run, err := player(t, options(dsn)).Start(replay.Statement{Worlds: []string{"SELECT * FROM d0.people", "SELECT * FROM d1.people"}}, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	if _, err := run.Rounds(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	pgtest.Exec(t, dsn, "ALTER TABLE d1.people ADD COLUMN more int")
	if _, err := run.Rounds(t.Context(), 2); !replay.Transient(err) {
		t.Errorf("after the change: %v, want a transient error", err)
	}
	if got, err := run.Rounds(t.Context(), 2); err != nil || len(got[0][1].Columns) != 4 {
		t.Errorf("afterwards: %v, %v", got, err)
	}
}

// A session is replaced when it has run its share of trials.
func TestSessionsAreReplaced(t *testing.T) {
	t.Parallel()
	opt := options(shadow(t))
	opt.SessionTrials, opt.Connections = 4, 1
	run, err := player(t, opt).Start(replay.Statement{Worlds: []string{"SELECT pg_backend_pid(), pg_sleep(0.05)", "SELECT pg_backend_pid(), pg_sleep(0.05)"}}, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	// A session that was slow to open is kept longer; the time limit only ends a test that hangs.
	seen := map[float64]bool{}
	for end := time.Now().Add(5 * time.Minute); len(seen) < 2; {
		got, err := run.Rounds(t.Context(), 2) // 0.2 s
		if err != nil {
			t.Fatal(err)
		}
		seen[got[0][0].Rows[0][0].Num] = true
		if time.Now().After(end) {
			t.Fatal("one session for all trials")
		}
	}
}

// Stream yields batches that grow for a quick query, ends when the loop does, and returns the error of ctx.
func TestStream(t *testing.T) {
	t.Parallel()
	run, err := player(t, options(shadow(t))).Start(replay.Statement{Worlds: []string{"SELECT 1", "SELECT 2", "SELECT 3"}}, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	sizes, last := []int{}, error(nil)
	for batch, err := range run.Stream(ctx, 1) {
		if err != nil {
			last = err
			continue
		}
		sizes = append(sizes, len(batch.Rounds))
		for _, round := range batch.Rounds {
			for world, o := range round {
				if o.Rows[0][0].Num != float64(world+1) {
					t.Fatalf("world %d gave %v", world, o)
				}
			}
		}
		if grown := slices.Max(sizes) > 1; grown && len(sizes) >= 12 || len(sizes) == 3000 { // a stall makes batches small again
			cancel()
		}
	}
	if !errors.Is(last, context.Canceled) || sizes[0] != 1 || slices.Max(sizes) == 1 {
		t.Errorf("batches of %v, then %v", sizes, last)
	}
	total := 0
	for batch, err := range run.Stream(t.Context(), 3) {
		if err != nil {
			t.Fatalf("after the cancellation: %v", err)
		}
		if total += len(batch.Rounds); total > 3 {
			break
		}
	}
}

// A statement that fails in every world because of the tables' definitions gives no evidence.
func TestAnotherVersion(t *testing.T) {
	t.Parallel()
	p := player(t, options(shadow(t)))
	for sql, want := range map[string]string{
		"SELECT sum(newer) FROM %s.people":                            "fails with SQLSTATE 42703: the definitions of the copied tables probably differ",
		"SELECT CASE WHEN id > 1 THEN grp ELSE id END FROM %s.people": "fails with SQLSTATE 42",
		"SELECT 1 / (count(*) - count(*)) FROM %s.people":             "",
		"SELECT grp::int FROM %s.people":                              "",
	} {
		for _, simple := range []bool{false, true} {
			got, err := rounds(t, p, replay.Statement{Simple: simple}, sql, 2)
			var setup *replay.SetupError
			switch {
			case want == "" && (err != nil || !got[1][1].Failed()):
				t.Errorf("%s: %v, %v, want a failure that is an outcome", sql, got, err)
			case want != "" && (!errors.As(err, &setup) || !strings.Contains(err.Error(), want)):
				t.Errorf("%s: got %v, want %q", sql, err, want)
			}
		}
	}
}
