package score

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/dpwatch/dpwatch/analysis/internal/bins"
	"github.com/dpwatch/dpwatch/analysis/internal/code"
	"github.com/dpwatch/dpwatch/analysis/internal/eprocess"
	"github.com/dpwatch/dpwatch/analysis/internal/event"
	"github.com/dpwatch/dpwatch/internal/outcome"
)

// TestSupportsThatEndApart: noise truncated at 3 scales is bet on by the numbers beyond the other world's range, noise
// without an end is not. The seeds are fixed, and the event is of the kind beyond.
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
			draw := func(w int) outcome.Outcome {
				z := math.Inf(1)
				for math.Abs(z) > c.most || math.IsInf(z, 0) {
					if z = math.Round(r.ExpFloat64()*0x1p20) / 0x1p20; r.Uint64()&1 == 0 {
						z = -z
					}
				}
				return outcome.Outcome{Columns: []outcome.Column{{Name: "x"}}, Rows: [][]outcome.Value{{{Kind: outcome.Number, Num: float64(w) + z}}}}
			}
			set := drive(t, 400, draw)
			s := set.specials.ofKind(revealScore)
			if got := s.Table.Laws != nil; got != c.want {
				t.Fatalf("numbers beyond the other's range are bet on: %v, want %v (counts %v)", got, c.want, s.Table.Before)
			}
			if !c.want {
				return
			}
			odds := make([]float64, 2*s.Table.Bins())
			e := s.Table.Laws.Place(set.null, odds)
			for _, side := range [2]int{eprocess.TowardD0, eprocess.TowardD1} {
				if k := s.EventKind(e.Toward[side]); k != BeyondEvent {
					t.Errorf("the event is of kind %s, want %s", k, BeyondEvent)
				}
			}
		})
	}
}

// TestRevealLaws: the working alternative is a law, and its bets are numbers, even if nearly all results lie beyond the
// range of the other world and some of them repeat. Otherwise the wealth would be NaN, and the audit could not find
// anything.
func TestRevealLaws(t *testing.T) {
	t.Parallel()
	s := bins.Binner{Categories: []code.Label{onceOnD0, onceOnD1, oftenOnD0, oftenOnD1, outsideD1, outsideD0}}
	for _, pairs := range []int{4, 25, 1000} {
		for _, repeated := range []float64{0, 1, 3, float64(pairs)} {
			table := event.NewTable(1, s.Bins())
			table.Pairs = pairs
			n := float64(pairs)
			own := [rareKinds][2]float64{{repeated, repeated}, {repeated, 0}, {n, n}}
			l := revealLaws(own, [rareKinds][2]float64{}, 0, [2]bool{true, true}, table)
			for w, law := range l {
				for _, p := range law {
					if !(p >= 0 && p < 1) {
						t.Errorf("%d pairs, %g repeated: probabilities %g on D%d", pairs, repeated, law, w)
						break
					}
				}
				if sum := event.SumOf(law); math.Abs(sum-1) > 1e-12 {
					t.Errorf("%d pairs, %g repeated: the probabilities on D%d sum to %g", pairs, repeated, w, sum)
				}
			}
			odds := make([]float64, 2*table.Bins())
			l.Place(eprocess.NewNull(.5, 0), odds)
			for _, x := range odds {
				if math.IsNaN(x) {
					t.Errorf("%d pairs, %g repeated: log factors %g", pairs, repeated, odds)
					break
				}
			}
		}
	}
}
