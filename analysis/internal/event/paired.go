package event

import (
	"math"

	"github.com/dpwatch/dpwatch/analysis/internal/eprocess"
)

// Paired counts pairs of trials by (X in S, Y in S) for the two events of a slot whose two worlds may share
// their noise. Its bet needs no independence within a pair: 1 + lam (1[X in S] - R 1[Y in S] - delta) with
// 0 <= lam <= 1/(R+delta) has mean at most 1 whatever the coupling, and the same with the worlds exchanged.
type Paired struct {
	Events Events
	counts [2][4]int32 // toward D0, toward D1; index = 2*(heavy world in S) + (light world in S)
}

// Add counts one pair of bins.
func (t *Paired) Add(bin0, bin1 int) {
	for i, side := range [2]int{eprocess.TowardD0, eprocess.TowardD1} {
		heavy, light := bin0, bin1
		if side == eprocess.TowardD1 {
			heavy, light = bin1, bin0
		}
		t.counts[i][2*(t.Events.Toward[side]>>heavy&1)+t.Events.Toward[side]>>light&1]++
	}
}

// Gain returns the log of what a component made of the pairs counted.
func (t *Paired) Gain(h eprocess.Null, c eprocess.Component) float64 {
	i, side := 0, eprocess.TowardD0
	if c.Share == eprocess.OnlyD1 {
		i, side = 1, eprocess.TowardD1
	}
	if !t.Events.Live[side] {
		return 0
	}
	lam := c.Excess / (h.Ratio + h.Delta)
	g := 0.0
	for k, n := range t.counts[i] {
		if n > 0 {
			g += float64(n) * math.Log1p(lam*(float64(k>>1)-h.Ratio*float64(k&1)-h.Delta))
		}
	}
	return g
}

// Most returns the most that a pair adds to the log of what a component makes.
func (t *Paired) Most(h eprocess.Null, c eprocess.Component) float64 {
	return math.Log1p(c.Excess / (h.Ratio + h.Delta))
}
