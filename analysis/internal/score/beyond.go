package score

import (
	"math"

	"github.com/dpwatch/dpwatch/analysis/internal/bins"
	"github.com/dpwatch/dpwatch/analysis/internal/code"
	"github.com/dpwatch/dpwatch/analysis/internal/event"
	"github.com/dpwatch/dpwatch/analysis/internal/state"
	"github.com/dpwatch/dpwatch/internal/withheld"
)

// beyondScore is a value that the other world has never shown.
var beyondScore = &kind{
	name: "beyond", make: func(int) statistic { return beyond{} }, where: singleNumber,
	single: .02, divided: .25, views: []event.View{event.Sorted}, prior: SupportPrior, keeps: true, looksBack: true, event: BeyondEvent, whole: true,
}

// beyond scores a single value that the other world has never shown: a number outside the range of all numbers of the
// other world so far, but inside that of this world, or a result that was seen before in this world alone. Noise that
// is clamped, truncated or one-sided has ends that give the true answer away. Where the laws have one support this is
// as rare as 1/n after n pairs, and as likely in one world as in the other up to the claim.
type beyond struct{ memoryless }

// ranges are those of all numbers of a single value so far.
type ranges struct {
	n        [2]int
	low, top [2]float64 // of each world's numbers
}

// leastBeyond is the number of a world's numbers from which their range counts.
const leastBeyond = 16

// code scores an outcome of either world, given what its whole result repeats.
func (b *ranges) code(c, repeated code.Code) code.Code {
	if !code.IsNumber(c) || min(b.n[0], b.n[1]) < leastBeyond {
		return code.Category(elsewhere)
	}
	outside := func(w int) bool { return c < b.low[w] || c > b.top[w] }
	switch out0, out1 := outside(0), outside(1); {
	case out1 && !out0:
		return code.Category(onD0Only)
	case out0 && !out1:
		return code.Category(onD1Only)
	}
	return repeated
}

// outside returns the code of a rare result unchanged, and scores any other outcome by the ranges alone.
func (b *ranges) outside(c, rare code.Code) code.Code {
	if code.CategoryOf(rare) != notRare {
		return rare
	}
	switch code.CategoryOf(b.code(c, code.Category(elsewhere))) {
	case onD0Only:
		return code.Category(outsideD1)
	case onD1Only:
		return code.Category(outsideD0)
	}
	return rare
}

// add takes a pair.
func (b *ranges) add(c0, c1 code.Code) {
	for w, c := range [2]code.Code{c0, c1} {
		if !code.IsNumber(c) {
			continue
		}
		if b.n[w]++; b.n[w] == 1 {
			b.low[w], b.top[w] = c, c
		}
		b.low[w], b.top[w] = math.Min(b.low[w], c), math.Max(b.top[w], c)
	}
}

func (beyond) score(r *Result) code.Code {
	if r.ranges == nil {
		return r.world
	}
	return r.ranges.code(r.Codes[0], r.world)
}

func (beyond) words(*Input, *Series, uint64) withheld.Text {
	return withheld.Public("a number beyond the range of the other world, or a result seen before in one world alone")
}

// learn starts the next table. Nothing is bet unless the past shows more such outcomes of one world than chance makes.
func (beyond) learn(in *Input, s *Series) {
	s.Table = nil
	if in.Slots[0].Shared {
		return
	}
	var right, wrong float64 // seen in the world that the category stands for, and in the other
	for w, codes := range s.Past {
		for _, c := range codes {
			switch id := code.CategoryOf(c); {
			case id == elsewhere:
			case int(id) == onD0Only+w:
				right++
			default:
				wrong++
			}
		}
	}
	if gap := right - wrong; gap < 0 || gap*gap <= 3*(right+wrong) {
		return
	}
	s.Binner = bins.Binner{Categories: []code.Label{onD0Only, onD1Only}}
	s.Table = event.NewTable(1, s.Binner.Bins())
	s.recount()
}

func (b *ranges) state(c *state.Codec) {
	for w := range b.n {
		c.All(&b.n[w], &b.low[w], &b.top[w])
		c.Check(b.n[w] >= 0)
	}
}
