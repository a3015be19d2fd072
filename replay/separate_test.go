package replay_test

import (
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/replay"
)

// Every separate trial has a session of its own, the order does not depend on the world, and worlds to skip are not
// replayed.
func TestSeparate(t *testing.T) {
	t.Parallel()
	dsn := shadow(t)
	const sql = "SELECT pid::text || ' ' || backend_start AS session, $1::text AS given, current_query() AS text FROM %s.people, pg_stat_get_activity(pg_backend_pid()) LIMIT 1"
	for _, vary := range []bool{false, true} {
		run, err := player(t, options(dsn)).Start(replay.Statement{
			Worlds:   []string{strings.Replace(sql, "%s", "d0", 1), strings.Replace(sql, "%s", "d1", 1), strings.Replace(sql, "%s", "d1", 1)},
			Params:   []capture.Param{{Value: []byte("value")}},
			Hoist:    replay.NewHoisting(nil),
			Separate: &replay.Separation{VaryText: vary, Skip: []bool{false, true, false}},
		}, 1)
		if err != nil {
			t.Fatal(err)
		}
		defer run.Close()
		sessions, texts := map[string]bool{}, map[string]bool{}
		for range 2 {
			rounds, err := run.Rounds(t.Context(), 10)
			if err != nil {
				t.Fatal(err)
			}
			for _, round := range rounds {
				if len(round) != 3 || len(round[1].Rows) != 0 {
					t.Fatalf("round %+v, want three worlds, the second one not played", round)
				}
				for _, w := range []int{0, 2} {
					row := round[w].Rows[0]
					sessions[row[0].Text] = true
					texts[row[2].Text] = true
					if world := []string{"d0.", "", "d1."}[w]; row[1].Text != "value" || !strings.Contains(row[2].Text, world) {
						t.Errorf("world %d: %+v", w, row)
					}
				}
			}
		}
		want := 2
		if vary {
			want = 40
		}
		if len(sessions) != 40 || len(texts) != want {
			t.Errorf("vary %t: %d sessions and %d texts of 40 trials, want 40 and %d", vary, len(sessions), len(texts), want)
		}
	}
}

// A failure of one separate trial is its outcome, and a query that fails in every world is a SetupError.
func TestSeparateFailure(t *testing.T) {
	t.Parallel()
	start := func(d0, d1 string) *replay.Run {
		run, err := player(t, options(shadow(t))).Start(replay.Statement{Worlds: []string{d0, d1}, Separate: &replay.Separation{}}, 1)
		if err != nil {
			t.Fatal(err)
		}
		return run
	}
	rounds, err := start("SELECT count(*) FROM d0.people", "SELECT 1 / 0 FROM d1.people").Rounds(t.Context(), 3)
	if err != nil {
		t.Fatal(err)
	}
	for _, round := range rounds {
		if round[0].Failed() || round[1].SQLState != "22012" {
			t.Errorf("round %+v, want a division by zero in the second world alone", round)
		}
	}
	if _, err := start("SELECT gone FROM d0.people", "SELECT gone FROM d1.people").Rounds(t.Context(), 3); err == nil || !strings.Contains(err.Error(), "42703") {
		t.Errorf("%v, want the column that is missing in every world", err)
	}
}
