package diagnosis

import (
	"math"
	"slices"

	"github.com/dpwatch/dpwatch/analysis/noise"
)

// moments describes the numbers of a slot in both worlds.
type moments struct {
	slot      *Slot
	shift     float64 // mean on D0 less mean on D1
	deviation float64 // standard error of shift
	spread    [2]float64
	scale     float64 // of the noise, both worlds pooled, in the best family
	fits      [3]float64
	family    noise.Family
	rounded   bool      // Laplace noise that was rounded to whole numbers
	residuals []float64 // of both worlds
}

// fitsBadly is the p-value below which noise is not that of a family. The scale was fitted, which makes p-values
// larger.
const fitsBadly = .1

// coarseScale is the spread from which noise on whole numbers is described as that on all numbers.
const coarseScale = 64

// leastNumbers is the fewest numbers of each world that are described.
const leastNumbers = 10

// momentsOf describes a slot; ok is false where the worlds have too few numbers, or numbers that do not vary.
func momentsOf(s *Slot) (m moments, ok bool) {
	m.slot = s
	var mean [2]float64
	variance := 0.0
	for w := range 2 {
		xs := s.finite(w)
		if len(xs) < leastNumbers {
			return m, false
		}
		slices.Sort(xs)
		xs = near(xs)
		n := float64(len(xs))
		center := median(xs)
		for _, x := range xs {
			mean[w] += (x - center) / n
			m.spread[w] += math.Abs(x-center) / n
		}
		mean[w] += center
		square := 0.0
		for _, x := range xs {
			square += (x - mean[w]) * (x - mean[w]) / n
		}
		variance += square / n
		if s.Discrete {
			center = math.Round(center)
		}
		for _, x := range xs {
			m.residuals = append(m.residuals, x-center)
		}
		if !(m.spread[w] > 0) || math.IsInf(square, 0) {
			return m, false
		}
	}
	m.shift, m.deviation = mean[0]-mean[1], math.Sqrt(variance)
	if math.IsNaN(m.shift) || math.IsInf(m.shift, 0) || !(m.deviation > 0) { // squares overflow or underflow
		return m, false
	}
	return m, m.fit()
}

// fit estimates the scale in each family. Noise counts as Gaussian only where Laplace, or geometric, noise does not
// fit. Whole numbers of small spread are on a grid, which the test against a continuous law would refute.
func (m *moments) fit() bool {
	families := []noise.Family{noise.Laplace, noise.Gaussian}
	fine := m.slot.Discrete && max(m.spread[0], m.spread[1]) < coarseScale
	if fine {
		families = families[:1]
		if families[0] = noise.Geometric; m.bellShaped() {
			families[0] = noise.Gaussian
		}
	}
	best := -1.0
	for _, f := range families {
		rough, err := noise.Test(m.residuals, noise.Law{Family: f, Scale: 1}, .95)
		if err != nil || !(rough.ScaleRatio > 0) || math.IsInf(rough.ScaleRatio, 0) {
			continue
		}
		fit, err := noise.Test(m.residuals, noise.Law{Family: f, Scale: rough.ScaleRatio}, .95)
		if err != nil {
			continue
		}
		m.fits[f] = fit.PValue
		if best < 0 || best < fitsBadly && fit.PValue > best {
			best, m.family, m.scale = fit.PValue, f, rough.ScaleRatio
		}
	}
	if fine && m.family == noise.Geometric && best < fitsBadly {
		m.round()
	}
	return best >= 0
}

// bellShaped reports whether residuals that are whole numbers look like Gaussian noise: their mean square is pi/2
// squared mean distances, and not 2. Where they are nearly all 0 or 1 apart, this does not distinguish the families.
func (m *moments) bellShaped() bool {
	absolute, square := 0.0, 0.0
	for _, x := range m.residuals {
		absolute, square = absolute+math.Abs(x), square+x*x
	}
	n := float64(len(m.residuals))
	return n >= 100 && absolute > 3*n && square*n < 1.75*absolute*absolute
}

// round describes the noise as rounded Laplace noise, if the share of residuals that are 0 is nearer to that of this
// noise than to that of geometric noise. Rounded Laplace noise of scale b has the mean distance 1/(2 sinh(1/2b)).
func (m *moments) round() {
	absolute, zeros := 0.0, 0.0
	for _, x := range m.residuals {
		absolute += math.Abs(x)
		if x == 0 {
			zeros++
		}
	}
	n := float64(len(m.residuals))
	scale := 1 / (2 * math.Asinh(n/(2*absolute)))
	a := math.Exp(-1 / m.scale)
	if math.Abs(1-math.Exp(-.5/scale)-zeros/n) < math.Abs((1-a)/(1+a)-zeros/n) {
		m.scale, m.rounded = scale, true
	}
}

// needed returns the scale that the claim needs for the observed shift, +Inf if no scale of the family is sufficient.
func (m *moments) needed(epsilon, delta float64) float64 {
	shift := math.Abs(m.shift)
	if m.family != noise.Gaussian {
		return shift / epsilon
	}
	return shift * gaussianScale(epsilon, delta)
}

// ratio is the shift in scales, at most greatestRatio, so that its square is finite.
func (m *moments) ratio() float64 { return min(math.Abs(m.shift)/m.scale, greatestRatio) }

const greatestRatio = 1e100

// gaussianScale returns the standard deviation of Gaussian noise that keeps (epsilon, delta) for a shift of 1 (Balle
// and Wang 2018, theorem 8), +Inf for delta 0.
func gaussianScale(epsilon, delta float64) float64 {
	if !(delta > 0) {
		return math.Inf(1)
	}
	profile := func(sigma float64) float64 {
		mu := 1 / sigma
		return normal(mu/2-epsilon/mu) - math.Exp(epsilon)*normal(-mu/2-epsilon/mu)
	}
	lo, hi := 1e-6, 1e6
	for range 100 {
		if mid := math.Sqrt(lo * hi); profile(mid) > delta {
			lo = mid
		} else {
			hi = mid
		}
	}
	return hi
}

func normal(x float64) float64 { return .5 * math.Erfc(-x/math.Sqrt2) }

// near returns the part of sorted numbers within 12 Laplace scales of their median: a few numbers far out do not
// describe the noise.
func near(xs []float64) []float64 {
	n := len(xs)
	reach := (xs[n-1-n/4] - xs[n/4]) / 2 * 12 / math.Ln2
	if !(reach > 0) {
		return xs
	}
	center := median(xs)
	lo, _ := slices.BinarySearch(xs, center-reach)
	hi, _ := slices.BinarySearch(xs, center+reach)
	return xs[lo:hi]
}

func median(xs []float64) float64 { return xs[(len(xs)-1)/2]/2 + xs[len(xs)/2]/2 }
