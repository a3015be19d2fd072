package lawfit

import (
	"math"
	"slices"

	"github.com/dpwatch/dpwatch/analysis/internal/bins"
	"github.com/dpwatch/dpwatch/analysis/internal/event"
	"github.com/dpwatch/dpwatch/analysis/internal/fit"
)

// Spread describes the numbers of one world: the median and the mean distance from it, which are the centre and the
// scale of a Laplace law, and the mean and the standard deviation, those of a normal law.
type Spread struct {
	n, median, distance, mean, deviation float64
	ties                                 bool // a value is there twice
}

// leastLaw is the number of values of each world before which no law is fitted.
const leastLaw = 4

// SpreadOf describes sorted numbers. It reports whether a law can be fitted.
func SpreadOf(values []float64) (m Spread, ok bool) {
	k := len(values)
	if k < leastLaw {
		return m, false
	}
	m.n = float64(k)
	m.median = values[(k-1)/2]/2 + values[k/2]/2
	for i := 1; i < k && !m.ties; i++ {
		m.ties = values[i] == values[i-1]
	}
	near := nearValues(values, m.median)
	n := float64(len(near))
	for _, x := range near {
		m.distance += math.Abs(x-m.median) / n
		m.mean += x / n
	}
	for _, x := range near {
		m.deviation += (x - m.mean) / n * (x - m.mean)
	}
	m.deviation = math.Sqrt(m.deviation)
	return m, m.distance > 0 && m.deviation > 0 && !math.IsInf(m.deviation, 0) && !math.IsInf(m.distance, 0)
}

// farFromMedian is the distance, in halves of the interquartile range, beyond which values do not count in scales: 12
// scales of Laplace noise, which lie beyond it once in 160,000 trials. A few values far out would stretch the law of
// all others.
const farFromMedian = 12 / math.Ln2

// leastNear is the fewest values whose quartiles show which values are far out.
const leastNear = 20

// nearValues returns the part of sorted values that is near their median, all of them where they are few or most are
// equal.
func nearValues(values []float64, median float64) []float64 {
	n := len(values)
	reach := (values[n-1-n/4] - values[n/4]) / 2 * farFromMedian
	if n < leastNear || !(reach > 0) {
		return values
	}
	lo, _ := slices.BinarySearch(values, median-reach)
	hi, _ := slices.BinarySearch(values, median+reach)
	return values[lo:hi]
}

// lawSteps are the edges of the bins that laws are compared on, in mean distances from the middle of both medians, on
// the right of it.
var lawSteps = [...]float64{.12, .25, .4, .55, .7, .87, 1.05, 1.25, 1.5, 1.75, 2, 2.3, 2.6, 3, 3.5, 4.2, 5, 6.5, 9}

// lawEdges returns the edges for the laws of two worlds. Their place follows from the scale and not from quantiles,
// because the law says how likely tails are in which nothing was seen yet. Where values repeat, edges lie halfway
// between neighbouring values, so that noise on a lattice has about the probabilities of the law without one. values
// are sorted.
func lawEdges(m [2]Spread, values []float64) (edges []float64) {
	middle, unit := m[0].median/2+m[1].median/2, max(m[0].distance, m[1].distance)
	add := func(z float64) {
		e := middle + z*unit
		if i, _ := slices.BinarySearch(values, e); i > 0 && i < len(values) {
			e = bins.Between(values[i-1], values[i])
		}
		if n := len(edges); !math.IsInf(e, 0) && (n == 0 || e > edges[n-1]) {
			edges = append(edges, e)
		}
	}
	for i := len(lawSteps) - 1; i >= 0; i-- {
		add(-lawSteps[i])
	}
	add(0)
	for _, z := range lawSteps {
		add(z)
	}
	return edges
}

// laplaceOverNormal is the log-likelihood of the Laplace laws less that of the normal laws.
func laplaceOverNormal(m [2]Spread) (better float64) {
	for _, x := range m {
		better += x.n * (math.Log(x.deviation/x.distance) + (math.Log(math.Pi/2)-1)/2)
	}
	return better
}

// Fitted are laws of noise, one per world, fitted to the numbers of the past.
type Fitted struct {
	spreads [2]Spread
	values  []float64 // of both worlds, sorted, if some are equal
	peak    peak
}

// Fit fits laws to the sorted numbers of both worlds, which the spreads describe.
func Fit(spreads [2]Spread, sorted [2][]float64) *Fitted {
	f := &Fitted{spreads: spreads}
	if spreads[0].ties || spreads[1].ties {
		f.values = bins.MergeSorted(slices.Clone(sorted[0]), sorted[1])
	}
	if fewTies(f.values) { // on a lattice a value that repeats is not a peak
		f.peak = peakOf(sorted, spreads, laplaceOverNormal(spreads))
	}
	return f
}

// Edges returns the edges of the bins that the laws are compared on.
func (f *Fitted) Edges() []float64 {
	if f.peak.weight > .5 {
		return peakEdges(f.spreads, &f.peak)
	}
	return lawEdges(f.spreads, f.values)
}

// OnBins returns the laws on the bins of a table: the average of two Laplace and of two normal laws, fitted to the past
// of both worlds and weighted by their likelihoods there, on the bins of a table. Centres and scales are drawn together
// as far as their difference may be chance. The outcomes that are not numbers have their frequencies. ok is false if
// the arithmetic fails.
func (f *Fitted) OnBins(b *bins.Binner, t *event.Table) (l event.Laws, ok bool) {
	m, pk := f.spreads, &f.peak
	part := 1 / (1 + math.Exp(-laplaceOverNormal(m)))
	centers := shrunkCenters(m, m[0].median, m[1].median, m[0].distance, m[1].distance)
	means := shrunkCenters(m, m[0].mean, m[1].mean, m[0].deviation, m[1].deviation)
	scales := shrunkScales(m, m[0].distance, m[1].distance, 1)
	deviations := shrunkScales(m, m[0].deviation, m[1].deviation, .5)
	n := float64(t.Pairs)
	l = event.NewLaws(t)
	for w := range l {
		numbers, below := m[w].n/n, 0.0
		for i := range l[w] {
			p := float64(t.Before[w][i]) / n
			if i < t.Numeric {
				upTo := 1.0
				if i < len(b.Edges) {
					x := b.Edges[i]
					z := (x - centers[w]) / scales[w]
					upTo = part*laplaceBelow(z) + (1-part)*normalBelow((x-means[w])/deviations[w])
					if pk.weight > 0 {
						upTo = (1-pk.weight)*upTo + pk.weight*pk.below(z)
					}
				}
				p, below = max(upTo-below, 0)*numbers, upTo
			}
			l[w][i] = p
		}
	}
	farOut(&l, t)
	l.ShareMasses(t, [2]float64{1, 1})
	if sum := event.SumOf(l[0]) + event.SumOf(l[1]); !(math.Abs(sum-2) < 1e-6) {
		return l, false // scales so far apart that the arithmetic fails
	}
	l.MixSteps(t)
	return l, true
}

// Frequencies replace the laws in the outermost bins if there are more values than the laws explain.
const (
	leastFarOut = 4 // values of both worlds
	timesFarOut = 4 // of what the laws expect
)

// farOut sets the probabilities of the outermost numeric bins from the past where the laws do not explain what lies
// there: values far out follow another law. Half a value is added on each world.
func farOut(l *event.Laws, t *event.Table) {
	n := float64(t.Pairs)
	for _, i := range [2]int{0, t.Numeric - 1} {
		k0, k1 := float64(t.Before[0][i]), float64(t.Before[1][i])
		if k0+k1 < leastFarOut || k0+k1 <= timesFarOut*n*(l[0][i]+l[1][i]) {
			continue
		}
		part := (k0 + .5) / (k0 + k1 + 1)
		for w, p := range [2]float64{part, 1 - part} {
			mass := min(p*(k0+k1)/n, .5)
			rest := (1 - mass) / (1 - l[w][i])
			for j := range l[w] {
				l[w][j] *= rest
			}
			l[w][i] = mass
		}
	}
}

// shrunkCenters draws two centres together as far as their difference may be chance, at about the scales given.
func shrunkCenters(m [2]Spread, c0, c1, s0, s1 float64) [2]float64 {
	v0, v1 := s0*s0/m[0].n, s1*s1/m[1].n
	moved := ((c0 - c1) - fit.Shrink(c0-c1, v0+v1)) / (v0 + v1)
	return [2]float64{c0 - v0*moved, c1 + v1*moved}
}

// shrunkScales does the same for scales, the logarithms of which have the variance unit/n. A fitted centre makes scales
// too small by half a value in n.
func shrunkScales(m [2]Spread, s0, s1, unit float64) [2]float64 {
	unseen := .5/m[0].n + .5/m[1].n
	mid := (math.Log(s0)+math.Log(s1))/2 + unseen
	half := fit.Shrink(math.Log(s0)-math.Log(s1), unit*(1/m[0].n+1/m[1].n)) / 2
	return [2]float64{math.Exp(mid + half), math.Exp(mid - half)}
}

// laplaceBelow is the distribution function of the Laplace law of scale 1.
func laplaceBelow(z float64) float64 {
	if z < 0 {
		return .5 * math.Exp(z)
	}
	return 1 - .5*math.Exp(-z)
}

// normalBelow is the distribution function of the standard normal law.
func normalBelow(z float64) float64 { return .5 * math.Erfc(-z/math.Sqrt2) }
