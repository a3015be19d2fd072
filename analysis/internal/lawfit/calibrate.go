package lawfit

import (
	"math"

	"github.com/dpwatch/dpwatch/analysis/internal/bins"
	"github.com/dpwatch/dpwatch/analysis/internal/event"
)

// Calibrated is a working alternative on the bins of a score that estimates the log-likelihood ratio: the masses of
// both worlds together as they were seen in the past, divided between the worlds as 1 : e^-(a + b s) at the middle s of
// a bin, a and b fitted to the past (Platt 1999) with the priors N(0, 1) and N(1, 1/4). A part 1/(n+1) of both laws is
// the same. It bets on every bin by its own ratio, where an event bets on all beyond its edge by one.
func Calibrated(b *bins.Binner, t *event.Table) (event.Laws, bool) {
	if t.Numeric < 3 || t.Numeric != len(b.Edges)+1 {
		return event.Laws{}, false
	}
	middle := make([]float64, t.Numeric)
	for i := 1; i < t.Numeric-1; i++ {
		middle[i] = b.Edges[i-1]/2 + b.Edges[i]/2
	}
	first, last := b.Edges[0], b.Edges[len(b.Edges)-1]
	middle[0] = first - (middle[1] - first)
	middle[t.Numeric-1] = last + (last - middle[t.Numeric-2])
	shift, slope := calibrate(middle, t)
	l := t.Divided(func(b int) float64 {
		if b >= t.Numeric {
			return .5
		}
		return 1 / (1 + math.Exp(-shift-slope*middle[b]))
	})
	return l, math.Abs(event.SumOf(l[0])+event.SumOf(l[1])-2) < 1e-6
}

// calibrate fits shift and slope by Newton's method.
func calibrate(middle []float64, t *event.Table) (shift, slope float64) {
	slope = 1
	const precision0, precision1 = 1, 4 // of the priors
	for range 20 {
		g0, g1 := precision0*shift, precision1*(slope-1)
		h00, h01, h11 := float64(precision0), 0., float64(precision1)
		for i, s := range middle {
			k0, k1 := float64(t.Before[0][i]), float64(t.Before[1][i])
			p := 1 / (1 + math.Exp(-shift-slope*s))
			g := (k0+k1)*p - k0
			h := (k0 + k1) * p * (1 - p)
			g0, g1 = g0+g, g1+g*s
			h00, h01, h11 = h00+h, h01+h*s, h11+h*s*s
		}
		det := h00*h11 - h01*h01
		d0, d1 := (h11*g0-h01*g1)/det, (h00*g1-h01*g0)/det
		if math.IsNaN(d0) || math.IsNaN(d1) || math.IsInf(d0, 0) || math.IsInf(d1, 0) {
			return 0, 0 // nothing is bet
		}
		shift, slope = shift-d0, min(max(slope-d1, 0), 4)
		if math.Abs(d0)+math.Abs(d1) < 1e-9 {
			break
		}
	}
	return shift, slope
}
