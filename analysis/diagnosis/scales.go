package diagnosis

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/dpwatch/dpwatch/analysis/noise"
	"github.com/dpwatch/dpwatch/internal/withheld"
)

// This file holds the causes that follow from how far the numbers of both worlds are apart, in scales of their noise.

// visible is the number of standard errors from which a shift counts.
const visible = 4

// The share of the needed scale that the noise of an average has if its sum and its count, or these and a second sum,
// each spend the whole claim is between these.
const (
	leastOfAverage = .25
	mostOfAverage  = .75
)

// widelyApart is the ratio of the widths of both worlds' noise from which no one scale describes the noise, so that a
// shift cannot be compared with it.
const widelyApart = 3

// scales returns the causes that the numbers show.
func (e *Evidence) scales() (causes []Cause) {
	var all []moments
	for i := range e.Slots {
		if m, ok := momentsOf(&e.Slots[i]); ok && !e.Slots[i].Shared {
			all = append(all, m)
		}
	}
	if len(all) == 0 || e.Constant || e.Slots[0].twoValued() {
		return nil
	}
	top := slices.MaxFunc(all, func(a, b moments) int { return cmp.Compare(a.loss(), b.loss()) })
	add := func(c Cause, ok bool) {
		if ok {
			causes = append(causes, c)
		}
	}
	add(e.several(all, &top))
	add(e.dependentScale(&top))
	causes = append(causes, e.oneShift(&top)...)
	return causes
}

// loss is the lower end of the shift in scales.
func (m *moments) loss() float64 { return (math.Abs(m.shift) - 2*m.deviation) / m.scale }

// several returns the cause where many columns or groups shift, each by no more than the claim allows.
func (e *Evidence) several(all []moments, top *moments) (c Cause, ok bool) {
	if len(e.Slots) < 2 {
		return c, false
	}
	z2, some, sum := 0.0, 0, 0.0
	columns, groups := map[int]bool{}, map[int]bool{}
	for i := range all {
		m := &all[i]
		z := m.shift / m.deviation
		z2 += z*z - 1
		deviation := m.deviation / m.scale
		sum += max(0, m.ratio()*m.ratio()-deviation*deviation)
		if math.Abs(z) > 2.5 {
			some++
			columns[m.slot.Column], groups[m.slot.Group] = true, true
		}
	}
	n := float64(len(all))
	mean := math.Sqrt(sum / n) // root of the mean squared shift, in scales
	z2 /= math.Sqrt(2 * n)
	chance := 2 + math.Sqrt(2*math.Log(n)) // standard errors of the greatest of n shifts
	single := (math.Abs(top.shift)-chance*top.deviation)/top.scale > 1.2*e.Epsilon
	if some < 2 || z2 < 5 || single && some < 3 {
		return c, false
	}
	weight := .91
	if single {
		weight = .4
	}
	figures := map[string]float64{"shifting": float64(some), "looked_at": n, "mean_shift_in_scales": mean}
	if len(groups) > 1 {
		return newCause(ContributionBounds, weight, withheld.Sprintf(
			"The answers of at least %d of %d columns and groups shift together, each by about %.2g scales of its noise, and the claim allows %.3g for all of them.",
			some, len(all), mean, e.Epsilon), figures), true
	}
	return newCause(Composition, weight, withheld.Sprintf(
		"%d columns of the same answer shift, each by about %.2g scales of its noise: together more than the %.3g that the claim allows.",
		len(columns), mean, e.Epsilon), figures), true
}

// dependentScale returns the cause where the two worlds have noise of different scales.
func (e *Evidence) dependentScale(m *moments) (c Cause, ok bool) {
	n := float64(min(len(m.slot.finite(0)), len(m.slot.finite(1))))
	ratio := m.spread[0] / m.spread[1]
	z := math.Log(ratio) * math.Sqrt(n/2)
	if math.Abs(z) < 5 || math.Abs(math.Log(ratio)) < .1 {
		return c, false
	}
	weight := .75
	switch {
	case math.Abs(math.Log(ratio)) > math.Log(widelyApart):
		weight = .92
	case m.ratio() > 2*e.Epsilon:
		weight = .5
	}
	return newCause(DataDependentScale, weight, withheld.Sprintf("The noise on D0 is %.3g times as wide as on D1.", ratio), map[string]float64{"scale_d0_over_d1": ratio}), true
}

// oneShift returns the causes of a shift that is too large for the noise of one column of one group.
func (e *Evidence) oneShift(m *moments) (causes []Cause) {
	need := m.needed(e.Epsilon, e.Delta)
	if math.Abs(m.shift) < visible*m.deviation {
		return nil
	}
	share := m.scale / need
	if relative := math.Hypot(m.deviation/m.shift, 1/math.Sqrt(float64(len(m.residuals)))); share*(1+1.5*relative) > 1 {
		return nil // chance may have made it
	}
	reading := noise.Wrong
	if !math.IsInf(need, 0) {
		law := noise.Law{Family: m.family, Scale: need}
		if law.Family == noise.Geometric && need > coarseScale { // it has as many cells as the scale is large, and looks like Laplace noise
			law.Family = noise.Laplace
		}
		if f, err := noise.Test(m.residuals, law, .99); err == nil {
			reading = f.Reading
		}
	}
	figures := map[string]float64{
		"shift_in_scales": m.ratio(), "scale_over_needed": share, "fit_" + m.family.String(): m.fits[m.family], "trials": float64(m.slot.kept()),
	}
	fit := withheld.Sprintf("The noise fits %s noise (p = %.2g).", family(m.family), m.fits[m.family])
	switch {
	case m.rounded:
		delete(figures, "fit_"+m.family.String())
		fit = withheld.Public("The noise looks like rounded Laplace noise.")
	case m.slot.Discrete && m.family == noise.Gaussian:
		delete(figures, "fit_"+m.family.String())
		fit = withheld.Public("The noise looks like rounded Gaussian noise.")
	case m.fits[m.family] < .001:
		fit = withheld.Public("The noise fits neither Laplace, Gaussian nor geometric noise.")
	}
	if math.IsInf(need, 0) && m.family != noise.Gaussian {
		return nil // a claim of epsilon 0
	}
	if math.IsInf(need, 0) {
		delete(figures, "scale_over_needed")
		causes = append(causes, newCause(NoiseFamily, .7, withheld.Sprintf("%s %s noise keeps no claim with delta 0, whatever its scale. The answers in %s shift by %.3g standard deviations.",
			fit, "Gaussian", m.slot.Where, m.ratio()), figures))
		laplace := m.scale / math.Sqrt2 // of Laplace noise with this standard deviation
		return append(causes, e.average(laplace*e.Epsilon/math.Abs(m.shift), .72, figures)...)
	}
	scale := withheld.Sprintf("The answers in %s shift by %.3g scales of their noise%s: the noise has %.2f of the scale that the claim needs for this shift (goodness of fit to that scale: %s). %s",
		m.slot.Where, m.ratio(), m.units(need), share, readings[reading], fit)
	implied := m.scale / need * math.Abs(m.shift) // the sensitivity that the noise is made for
	size := e.sizes(m, implied)
	if size[NoiseScale] == slices.Max(slices.Collect(maps.Values(size))) {
		causes = append(causes, e.average(share, size[NoiseScale]+.02, figures)...)
	}
	for _, code := range [...]Code{NoiseScale, Clipping, ContributionBounds} {
		if w := size[code]; w > 0 {
			causes = append(causes, newCause(code, w, scale, figures))
		}
	}
	return causes
}

// average returns the cause of an average that has such a share of the noise that the claim needs, none for other shares.
func (e *Evidence) average(share, weight float64, figures map[string]float64) []Cause {
	if !e.Average || share < leastOfAverage || share > mostOfAverage {
		return nil
	}
	return []Cause{newCause(Composition, weight, withheld.Sprintf(
		"The answer is an average, and its noise has %.2f of the scale that the claim needs: so it is if a sum and a count each spend the whole claim.", share), figures)}
}

var readings = map[noise.Reading]string{noise.Correct: "not refuted", noise.MinorError: "off by at most a half", noise.Wrong: "wrong"}

func family(f noise.Family) string {
	return map[noise.Family]string{noise.Laplace: "Laplace", noise.Gaussian: "Gaussian", noise.Geometric: "geometric"}[f]
}

// units names shift and scales in the units of the data, which are withheld.
func (m *moments) units(need float64) withheld.Text {
	number := func(x float64) string { return strconv.FormatFloat(x, 'g', 4, 64) }
	return withheld.New(" (a shift of "+number(math.Abs(m.shift))+", noise of scale "+number(m.scale)+", needed "+number(need)+")", "")
}

// sizes weighs the causes of one large shift. A count of persons moves by 1, so that noise for less is too little
// noise, and a greater move is more rows than the noise is made for. A sum moves by a person's value: clipped values
// end at a bound, which is mostly a round number; a shift far above the sensitivity that the noise is made for, or one
// that is not round where that sensitivity is, was not clipped. A shift within the bounds in the query may be that of
// clipped values.
func (e *Evidence) sizes(m *moments, implied float64) map[Code]float64 {
	shift := math.Abs(m.shift)
	errorOfShift := max(3*m.deviation, 1e-9*shift)
	errorOfImplied := 4 * implied / math.Sqrt(2*float64(m.slot.kept()))
	switch {
	case m.slot.Discrete && math.Abs(shift-1) < max(errorOfShift, .25):
		return map[Code]float64{NoiseScale: .9}
	case m.slot.Discrete && math.Abs(implied-1) < max(errorOfImplied, .25):
		return map[Code]float64{ContributionBounds: .9, NoiseScale: .5}
	case shift <= e.Bound+errorOfShift && e.Bound > 0:
		return map[Code]float64{NoiseScale: .85, Clipping: .4}
	case shift > 20*implied && math.Abs(implied-1) < max(errorOfImplied, .1):
		return map[Code]float64{ContributionBounds: .8, Clipping: .7, NoiseScale: .3}
	case math.Abs(shift-1) < errorOfShift && errorOfShift < .5:
		return map[Code]float64{NoiseScale: .85, Clipping: .4}
	case shift > 5*implied:
		return map[Code]float64{Clipping: .8, ContributionBounds: .6, NoiseScale: .4}
	}
	shiftRound, impliedRound := nearRound(shift, errorOfShift), nearRound(implied, errorOfImplied)
	if impliedRound && !shiftRound || e.Bound > 0 && math.Abs(implied-e.Bound) < errorOfImplied {
		return map[Code]float64{Clipping: .8, NoiseScale: .6}
	}
	return map[Code]float64{NoiseScale: .8, Clipping: .6}
}

// nearRound reports whether a number of one or two and a half significant digits lies within the error of x.
func nearRound(x, within float64) bool {
	if !(x > within) {
		return true
	}
	for e := math.Floor(math.Log10(x - within)); e <= math.Ceil(math.Log10(min(x+within, math.MaxFloat64))); e++ {
		for _, d := range [...]float64{1, 1.5, 2, 2.5, 3, 4, 5, 6, 8} {
			if math.Abs(d*math.Pow(10, e)-x) <= within {
				return true
			}
		}
	}
	return false
}

// twoValued reports whether a slot has the answers of randomised response.
func (s *Slot) twoValued() bool {
	_, ok := s.categories()
	return ok
}
