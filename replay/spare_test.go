package replay_test

import (
	"fmt"
	"testing"

	"github.com/dpwatch/dpwatch/internal/longtest"
	"github.com/dpwatch/dpwatch/replay"
)

// TestSpare: rounds leave out the worlds that Spare names, hoisted or not, and those of the next Stream are whole.
func TestSpare(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	dsn := hoistShadow(t, `CREATE SCHEMA d2; CREATE TABLE d2.t AS SELECT * FROM d0.t WHERE id > 100`)
	worlds := make([]string, 3)
	for i := range worlds {
		worlds[i] = fmt.Sprintf("SELECT count(*) + constant(), sum(x) FROM d%d.t", i)
	}
	for _, hoist := range []*replay.Hoisting{nil, replay.ForceHoisting()} {
		run, err := player(t, options(dsn)).Start(replay.Statement{Worlds: worlds, Hoist: hoist}, 1)
		if err != nil {
			t.Fatal(err)
		}
		defer run.Close()
		stream := func(spare []bool, enough func(spared, hoisted int) bool) {
			t.Helper()
			spared := 0
			for batch, err := range run.Stream(t.Context(), 50) {
				if err != nil {
					t.Fatal(err)
				}
				for _, round := range batch.All() {
					for world, want := range []float64{500, 499, 400} {
						left := batch.Spared != nil && batch.Spared[world]
						if got := round[world].Rows; left != (got == nil) || !left && got[0][0].Num != want {
							t.Fatalf("world %d, spared %v: %v, want %v rows", world, batch.Spared, got, want)
						}
					}
				}
				if batch.Spared != nil {
					spared++
				}
				hoisted := 0
				if hoist != nil {
					hoisted = hoist.Report().HoistedRounds
				}
				if enough(spared, hoisted) {
					return
				}
				run.Choose(replay.Choice{Spared: spare, Opening: true})
			}
		}
		stream([]bool{false, true, false}, func(spared, hoisted int) bool { return spared >= 3 && (hoist == nil || hoisted >= 500) })
		first := true
		stream(nil, func(spared, _ int) bool {
			if first && spared > 0 {
				t.Error("the first batch of the next stream leaves out a world")
			}
			first = false
			return true
		})
	}
}
