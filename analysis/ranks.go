package analysis

import (
	"cmp"
	"math"
	"slices"

	"github.com/dpwatch/dpwatch/analysis/internal/code"
	"github.com/dpwatch/dpwatch/analysis/internal/score"
)

// Ranks is a histogram for readers from whom values are withheld: the counts of kept numbers of one column of one
// partition by their rank among those of both worlds. It has no value, no distance between values and no number of
// different values: any increasing function of the answers gives the same one.
type Ranks struct {
	Label string // without the key of a group
	// D0 and D1 are the counts in bins that each hold as many of the numbers of both worlds; nil if one number is so
	// frequent that a bin would show it.
	D0, D1 []int
	// Event holds the intervals of ranks, from 0 to 1, of the event of a Histogram; Inside and Numbers are how many
	// numbers of each world it holds, and of how many.
	Event           [][2]float64
	Inside, Numbers [2]int
	Direction       string
}

// rankBins is the number of bins of Ranks.
const rankBins = 10

// ranks counts the numbers of a slot. It is nil with too few numbers.
func (o *observations) ranks(s *score.Series, m marked) *Ranks {
	type number struct {
		value float64
		world int
	}
	var all []number
	r := &Ranks{Label: o.scores.SlotLabel(s.Slot).String(), Direction: m.direction}
	for w, codes := range s.Past {
		for _, c := range codes {
			if code.IsNumber(c) {
				all = append(all, number{c, w})
				r.Numbers[w]++
			}
		}
	}
	if len(all) < 2*rankBins {
		return nil
	}
	slices.SortFunc(all, func(x, y number) int { return cmp.Compare(x.value, y.value) })
	bins, frequent := [2][rankBins]float64{}, false
	each := float64(len(all)) / rankBins
	for i, j := 0, 0; i < len(all); i = j {
		var equal [2]float64
		for j = i; j < len(all) && all[j].value == all[i].value; j++ {
			equal[all[j].world]++
		}
		frequent = frequent || float64(j-i) > each
		if m.has(all[i].value) {
			r.Inside[0], r.Inside[1] = r.Inside[0]+int(equal[0]), r.Inside[1]+int(equal[1])
			from, to := float64(i)/float64(len(all)), float64(j)/float64(len(all))
			if n := len(r.Event); n > 0 && r.Event[n-1][1] == from {
				r.Event[n-1][1] = to
			} else {
				r.Event = append(r.Event, [2]float64{from, to})
			}
		}
		for b := range rankBins { // equal numbers are spread over the bins of their ranks
			if part := min(float64(j), each*float64(b+1)) - max(float64(i), each*float64(b)); part > 0 {
				bins[0][b] += equal[0] * part / float64(j-i)
				bins[1][b] += equal[1] * part / float64(j-i)
			}
		}
	}
	if frequent {
		return r
	}
	for b := range rankBins {
		r.D0, r.D1 = append(r.D0, int(math.Round(bins[0][b]))), append(r.D1, int(math.Round(bins[1][b])))
	}
	return r
}
