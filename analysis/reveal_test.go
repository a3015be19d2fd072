package analysis

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/dpwatch/dpwatch/analysis/internal/eprocess"
)

// TestSupportsThatEndApart: noise truncated at 3 scales is bet on by the numbers beyond the other world's range, noise without an end is not.
// The seeds are fixed, and the event is of the kind beyond.
func TestSupportsThatEndApart(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		most float64
		want bool
	}{{"truncated", 3, true}, {"endless", math.Inf(1), false}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(1, 2))
			draw := func(x float64) Outcome {
				z := math.Inf(1)
				for math.Abs(z) > c.most || math.IsInf(z, 0) {
					if z = math.Round(r.ExpFloat64()*0x1p20) / 0x1p20; r.Uint64()&1 == 0 {
						z = -z
					}
				}
				return Outcome{Columns: []Column{{Name: "x"}}, Rows: [][]Value{{{Kind: Number, Num: x + z}}}}
			}
			a, err := New(Claim{Epsilon: 1}, Options{MaxTrials: 1000})
			if err != nil {
				t.Fatal(err)
			}
			for range 400 {
				a.Add(draw(0), draw(1))
			}
			s := a.ofKind(revealScore)
			if got := s.table.Laws != nil; got != c.want {
				t.Fatalf("numbers beyond the other's range are bet on: %v, want %v (counts %v)", got, c.want, s.table.Before)
			}
			if !c.want {
				return
			}
			odds := make([]float64, 2*s.table.Bins())
			e := s.table.Laws.Place(a.lead.Null, odds)
			for _, side := range [2]int{eprocess.TowardD0, eprocess.TowardD1} {
				if k := s.eventKind(e.Toward[side]); k != BeyondEvent {
					t.Errorf("the event is of kind %s, want %s", k, BeyondEvent)
				}
			}
		})
	}
}
