package score

import (
	"math"

	"github.com/dpwatch/dpwatch/analysis/internal/bins"
	"github.com/dpwatch/dpwatch/analysis/internal/code"
	"github.com/dpwatch/dpwatch/analysis/internal/event"
	"github.com/dpwatch/dpwatch/analysis/internal/state"
	"github.com/dpwatch/dpwatch/internal/withheld"
)

// ratioScore is joint, a log-likelihood ratio by logistic regression.
var ratioScore = &kind{
	name: "joint_ratio", make: func(int) statistic { return new(learned) }, where: severalSlots, several: .02, fewSlots: true,
	views: []event.View{event.Ascending}, lifetime: lifetime{learned: 1, growth: 1.5}, event: JointEvent,
}

// learned is a joint score that estimates the log-likelihood ratio of a whole result: logistic regression of the world
// on features of all slots, up to maxLearnedSlots of them. It is what naive Bayes and the linear discriminant cannot be
// at once: slots that vary together, texts among numbers, and noise whose ratio stops growing beyond the centres.
type learned struct {
	features []feature
	scores   [2][]code.Code // per world: out-of-fold scores of the past
}

// Limits of the learned score. What learning holds apart from the past is at most fit.Folds matrices of
// maxFeatures^2 and one score per kept pair and world.
const (
	maxLearnedSlots      = 24
	maxFeatures          = 56
	maxFeatureCategories = 12 // per slot
	maxCrossed           = 3  // columns of a row up to which categories are crossed with numbers
	leastLearned         = 64 // pairs before which nothing is learned
	learnedReach         = 1 << 10
)

// form says what a feature computes from a slot.
type form uint8

const (
	constantForm    form = iota // 1: the regression's constant, which adds nothing to the score
	stepForm                    // the value around the pooled median, clipped at a quarter of the spread
	linearForm                  // the same, clipped at four spreads
	distanceForm                // the distance from the pooled median, in spreads, clipped likewise
	numberForm                  // 1 for a number
	categoryForm                // 1 for one category
	crossForm                   // the step of another slot's value of the same row where the slot has one category, else 0
	crossLinearForm             // the same, linear
	totalForm                   // the sum of all steps of single slots, over the root of their number
)

// feature is one term of the score. A slot's value counts in units of its spread (half of the interquartile range);
// where less is at least 0 it is the difference from that slot's value, or, of cross terms, less is the slot with the
// value.
type feature struct {
	form          form
	slot, less    int
	category      code.Label
	center, scale float64
	weight        float64
}

// fill writes the values of the features of a result. A value that is not a number counts as the center.
func (l *learned) fill(dst []float64, codes []code.Code) {
	total, steps := 0.0, 0.0
	for i := range l.features {
		f := &l.features[i]
		switch f.form {
		case constantForm:
			dst[i] = 1
			continue
		case totalForm:
			dst[i] = total / math.Sqrt(max(steps, 1))
			continue
		}
		c := codes[f.slot]
		dst[i] = 0
		switch {
		case f.form == numberForm:
			dst[i] = float64(code.Bit(code.IsNumber(c)))
			continue
		case f.form == categoryForm:
			dst[i] = float64(code.Bit(!code.IsNumber(c) && code.LabelOf(c) == f.category))
			continue
		case f.form == crossForm:
			if code.IsNumber(c) || code.LabelOf(c) != f.category {
				continue
			}
			c = codes[f.less]
		case f.less >= 0:
			c -= codes[f.less] // a NaN stays one
		}
		if !code.IsNumber(c) {
			continue
		}
		dst[i] = f.of((c - f.center) / f.scale)
		if f.form == stepForm && f.less < 0 {
			total += dst[i]
			steps++
		}
	}
}

// of is the feature's value for a standardised number.
func (f *feature) of(z float64) float64 {
	switch f.form {
	case stepForm, crossForm:
		return min(max(4*z, -1), 1)
	case distanceForm:
		return min(math.Abs(z), 4)
	}
	return min(max(z, -4), 4)
}

// of returns the score of a result, the features' values having been filled in. The regression's constant adds nothing.
func (l *learned) of(values, weights []float64) code.Code {
	sum := 0.0
	for i, x := range values {
		if l.features[i].form != constantForm {
			sum += x * weights[i]
		}
	}
	return boundedCode(sum, learnedReach)
}

func (l *learned) score(r *Result) code.Code {
	var values, weights [maxFeatures]float64
	var all [maxLearnedSlots]code.Code // with those that have not come yet
	for i := range all {
		all[i] = r.at(i)
	}
	for i := range l.features {
		weights[i] = l.features[i].weight
	}
	l.fill(values[:], all[:])
	r.ratio = l.of(values[:len(l.features)], weights[:])
	return r.ratio
}

func (l *learned) words(in *Input, s *Series, set uint64) withheld.Text {
	return in.jointWords(s, set, nounOf("estimated log-likelihood ratio", "estimated log-likelihood ratios"))
}

func (l *learned) state(c *state.Codec) {
	state.List(c, &l.features, func(f *feature) {
		state.Num(c, &f.form)
		c.All(&f.slot, &f.less)
		f.category.State(c)
		c.All(&f.center, &f.scale, &f.weight)
		c.Check(f.form <= totalForm && f.slot >= 0 && f.less >= -1 && max(f.slot, f.less) < min(maxLearnedSlots, max(c.Slots, 1)))
	})
	c.Check(len(l.features) <= maxFeatures)
}

// gather writes the codes of a kept pair to dst, and returns those of all slots.
func gather(dst *[maxLearnedSlots]code.Code, slots []*Series, world, k int) []code.Code {
	for i, s := range slots {
		dst[i] = s.Past[world][k]
	}
	return dst[:len(slots)]
}

// choose sets the features by the slots' bins and pasts: the categories of every slot, then steps, then what fits of
// differences of neighbouring columns of one row, linear terms and distances. cells is the number of slots per row.
func (l *learned) choose(slots []*Series, cells int, sc *bins.Scratch) {
	l.features = append(l.features[:0], feature{form: constantForm})
	add := func(f feature) {
		if len(l.features) < maxFeatures-1 {
			l.features = append(l.features, f)
		}
	}
	type spread struct {
		slot          int
		center, scale float64
	}
	var numbers []spread
	for i, s := range slots {
		if s.Shared || s.Table == nil {
			continue
		}
		some := s.Table.HasNumbers()
		if center, scale, ok := slotSpread(sc, s.Past, [2][]code.Code{}); ok {
			numbers = append(numbers, spread{i, center, scale})
		}
		// One outcome may be left out: the others and the constant say all.
		left := s.Binner.Categories
		if some && len(left) > 0 {
			add(feature{form: numberForm, slot: i, less: -1})
		}
		if len(left) > 0 {
			left = left[1:]
		}
		for _, id := range few(left) {
			add(feature{form: categoryForm, slot: i, less: -1, category: id})
		}
	}
	for _, n := range numbers {
		add(feature{stepForm, n.slot, -1, 0, n.center, n.scale, 0})
		if cells > 1 && cells <= maxCrossed {
			add(feature{stepForm, n.slot, -1, 0, n.center - n.scale, n.scale, 0})
			add(feature{stepForm, n.slot, -1, 0, n.center + n.scale, n.scale, 0})
		}
	}
	if cells <= maxCrossed {
		for _, n := range numbers {
			for at := n.slot / cells * cells; at < min(n.slot/cells*cells+cells, len(slots)); at++ {
				for _, id := range few(slots[at].Binner.Categories) {
					if at != n.slot && slots[at].Table != nil && !slots[at].Shared {
						add(feature{crossForm, at, n.slot, id, n.center - n.scale, n.scale, 0})
						add(feature{crossForm, at, n.slot, id, n.center + n.scale, n.scale, 0})
					}
				}
			}
		}
	}
	for i := 1; i < len(numbers); i++ {
		a, b := numbers[i], numbers[i-1]
		if a.slot/cells != b.slot/cells {
			continue // the order of rows says nothing
		}
		center, scale, ok := slotSpread(sc, slots[a.slot].Past, slots[b.slot].Past)
		if ok && scale < min(a.scale, b.scale) { // neighbours that vary together
			add(feature{stepForm, a.slot, b.slot, 0, center, scale, 0})
			add(feature{linearForm, a.slot, b.slot, 0, center, scale, 0})
		}
	}
	for _, form := range [...]form{linearForm, distanceForm} {
		for _, n := range numbers {
			add(feature{form, n.slot, -1, 0, n.center, n.scale, 0})
		}
	}
	if len(numbers) > 1 {
		l.features = append(l.features, feature{form: totalForm, less: -1})
	}
}

func few(categories []code.Label) []code.Label {
	return categories[:min(len(categories), maxFeatureCategories)]
}

// slotSpread returns the median and half of the interquartile range of the numbers of both worlds, or of their
// differences from others' where these are given. It reports whether there is any spread.
func slotSpread(sc *bins.Scratch, past, less [2][]code.Code) (center, scale float64, ok bool) {
	sc.Values = sc.Values[:0]
	for w, codes := range past {
		stride := (2*len(codes) + bins.MaxEdgeData - 1) / bins.MaxEdgeData
		for i := 0; i < len(codes); i += max(1, stride) {
			c := codes[i]
			if less[w] != nil {
				c -= less[w][i]
			}
			if code.IsNumber(c) {
				sc.Values = append(sc.Values, c)
			}
		}
	}
	n := len(sc.Values)
	if n < 8 {
		return 0, 0, false
	}
	sc.Sort(sc.Values)
	center, scale = sc.Values[n/2], (sc.Values[n-1-n/4]-sc.Values[n/4])/2
	if !(scale > 0) { // most are equal: whatever differs is far away
		scale = (sc.Values[n-1-n/16] - sc.Values[n/16]) / 2
	}
	return center, scale, scale > 0 && !math.IsInf(scale, 0) && !math.IsInf(1/scale, 0)
}
