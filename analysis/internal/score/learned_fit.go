package score

import (
	"math"

	"github.com/dpwatch/dpwatch/analysis/internal/code"
	"github.com/dpwatch/dpwatch/analysis/internal/fit"
)

// fit fits the learned score to the kept pairs and scores these out of fold. It reports whether anything was learned.
func (l *learned) fit(in *Input, _ *Series) (past [2][]code.Code, differ bool) {
	n := len(in.Slots[0].Past[0])
	if n < leastLearned || len(in.Slots) > maxLearnedSlots {
		return past, false
	}
	l.choose(in.Slots, in.Reader.Cells(), &in.scratch)
	if len(l.features) < 3 {
		return past, false
	}
	var codes [maxLearnedSlots]code.Code
	fill := func(dst []float64, world, pair int) { l.fill(dst, gather(&codes, in.Slots, world, pair)) }
	regression := fit.NewLogistic(len(l.features))
	regression.Fit(n, fill)
	some := false
	for i, w := range regression.Weights() {
		l.features[i].weight = w
		some = some || l.features[i].form != constantForm && math.Abs(w) > 1e-6
		if math.IsNaN(w) || math.IsInf(w, 0) {
			return past, false
		}
	}
	if !some {
		return past, false
	}
	for w := range l.scores {
		l.scores[w] = append(l.scores[w][:0], make([]code.Code, n)...)
	}
	values := make([]float64, len(l.features))
	for fold := range fit.Folds {
		weights := regression.Without(fold)
		for w := range l.scores {
			for k := fold; k < n; k += fit.Folds {
				fill(values, w, k)
				l.scores[w][k] = l.of(values, weights)
			}
		}
	}
	return l.scores, true
}
