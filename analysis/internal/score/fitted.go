package score

import (
	"fmt"
	"math"

	"github.com/dpwatch/dpwatch/analysis/internal/bins"
	"github.com/dpwatch/dpwatch/analysis/internal/code"
	"github.com/dpwatch/dpwatch/analysis/internal/event"
	"github.com/dpwatch/dpwatch/analysis/internal/fit"
	"github.com/dpwatch/dpwatch/analysis/internal/state"
	"github.com/dpwatch/dpwatch/internal/withheld"
)

// fittedScore is the value of the only slot by laws fitted to the past.
var fittedScore = &kind{
	name: "fitted", make: func(int) statistic { return new(fitted) }, where: singleNumber,
	single: .04, views: []event.View{event.Ascending}, prior: FittedPrior, event: NumberEvent, column: true,
	near: func(in *Input, e *Event) withheld.Text {
		return withheld.Sprintf("values near one of the centres of %s", in.Place(e.Series.Slot))
	},
}

// fitted scores a value by the likelihood ratio of two Laplace laws, one per world, that were fitted to the past:
//
//	s(x) = |x-m1|/b1 - |x-m0|/b0, m the medians, b the mean distances from them.
//
// The score reflects centre and scale together: its half-lines are the best events for noise of another scale around
// another centre. It follows from the past alone, so that an event on it is predictable like any other.
type fitted struct {
	center, rate [2]float64 // rate = 1/b
}

// fit learns the laws from past codes of both worlds. It reports whether there was enough to learn from. The scales are
// drawn together as far as their difference (ln b has variance 1/n) may be chance.
func (f *fitted) fit(past [2][]code.Code, s *bins.Scratch) bool {
	var scale [2]float64
	var n [2]float64
	for w, codes := range past {
		s.Values = s.Values[:0]
		stride := (len(codes) + bins.MaxEdgeData - 1) / bins.MaxEdgeData
		for i, c := range codes {
			if code.IsNumber(c) && (stride <= 1 || i%stride == 0) {
				s.Values = append(s.Values, c)
			}
		}
		if len(s.Values) < leastJoint {
			return false
		}
		s.Sort(s.Values)
		k := len(s.Values)
		f.center[w] = s.Values[(k-1)/2]/2 + s.Values[k/2]/2
		for _, x := range s.Values {
			scale[w] += math.Abs(x-f.center[w]) / float64(k)
		}
		n[w] = float64(k)
	}
	if !(scale[0] > 0 && scale[1] > 0 && scale[0] < math.MaxFloat64 && scale[1] < math.MaxFloat64) {
		return false
	}
	mid := (math.Log(scale[0]) + math.Log(scale[1])) / 2
	half := fit.Shrink(math.Log(scale[0])-math.Log(scale[1]), 1/n[0]+1/n[1]) / 2
	f.rate = [2]float64{math.Exp(-mid - half), math.Exp(-mid + half)}
	return f.rate[0] > 0 && f.rate[1] > 0 && !math.IsInf(f.rate[0], 0) && !math.IsInf(f.rate[1], 0)
}

func (f *fitted) score(r *Result) code.Code { return f.of(r.at(0)) }

// of returns the score of a code; categories are themselves.
func (f *fitted) of(c code.Code) code.Code {
	if !code.IsNumber(c) {
		return c
	}
	x := math.Abs(c-f.center[1])*f.rate[1] - math.Abs(c-f.center[0])*f.rate[0]
	return boundedCode(x, fittedReach)
}

// fittedReach bounds the score.
const fittedReach = 1 << 16

// words says what is scored. The centres are the true answers, up to the averaged noise.
func (f *fitted) words(in *Input, s *Series, set uint64) withheld.Text {
	value := fmt.Sprintf("log-likelihood ratio of noise around %.4g of scale %.4g (D0) and around %.4g of scale %.4g (D1)",
		f.center[0], 1/f.rate[0], f.center[1], 1/f.rate[1])
	column := in.ColumnOf(s)
	return in.binWords(s, set, noun{
		withheld.Sprintf("column %s: %s", column, withheld.New(value, "log-likelihood ratio of noise fitted to D0 and to D1")),
		withheld.Sprintf("log-likelihood ratios of column %s, of noise fitted to D0 and to D1", column),
	})
}

func (f *fitted) state(c *state.Codec) {
	for w := range 2 {
		c.All(&f.center[w], &f.rate[w])
	}
}

// learn fits the score of a single value again whenever its bins are learned again.
func (f *fitted) learn(in *Input, s *Series) {
	if len(in.Slots) != 1 || in.Slots[0].Shared {
		s.Table = nil
		return
	}
	if s.Table != nil && in.pairs >= 64 && in.pairs < 2*s.learned {
		s.carry()
		return
	}
	if !f.fit(in.Slots[0].Past, &in.scratch) {
		s.Table = nil
		return
	}
	s.relearnFrom(in.Slots[0].scores(f.of), in.pairs, &in.scratch)
}

// scores returns what a score makes of the kept codes of a slot.
func (s *Series) scores(of func(code.Code) code.Code) (past [2][]code.Code) {
	for w, codes := range s.Past {
		past[w] = make([]code.Code, len(codes))
		for i, c := range codes {
			past[w][i] = of(c)
		}
	}
	return past
}
