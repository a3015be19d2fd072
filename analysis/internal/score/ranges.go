package score

import (
	"math"

	"github.com/dpwatch/dpwatch/analysis/internal/code"
	"github.com/dpwatch/dpwatch/analysis/internal/state"
)

// ranges are those of all numbers of a single value so far. A number outside the range of the other world, but inside
// that of its own, shows the world: noise that is clamped, truncated or one-sided has ends that give the true answer
// away. Where the laws have one support this is as rare as 1/n after n pairs, and as likely in one world as in the
// other up to the claim.
type ranges struct {
	n        [2]int
	low, top [2]float64 // of each world's numbers
}

// leastInRange is the number of a world's numbers from which their range counts.
const leastInRange = 16

// outside returns the code of a rare result unchanged, and scores any other outcome by the ranges.
func (b *ranges) outside(c, rare code.Code) code.Code {
	if code.CategoryOf(rare) != notRare || !code.IsNumber(c) || min(b.n[0], b.n[1]) < leastInRange {
		return rare
	}
	outside := func(w int) bool { return c < b.low[w] || c > b.top[w] }
	switch out0, out1 := outside(0), outside(1); {
	case out1 && !out0:
		return code.Category(outsideD1)
	case out0 && !out1:
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

func (b *ranges) state(c *state.Codec) {
	for w := range b.n {
		c.All(&b.n[w], &b.low[w], &b.top[w])
		c.Check(b.n[w] >= 0)
	}
}
