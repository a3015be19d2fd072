package lawfit

import (
	"math"
	"slices"
	"sort"
	"sync"

	"github.com/dpwatch/dpwatch/analysis/internal/code"
)

// peak is a law of noise that is much smaller in few of the trials: a part of the values around the same centre, at a
// part of the scale of the others. The part and the scale are those of the past of both worlds.
type peak struct {
	weight float64 // of this law among those fitted; 0 where it is not looked for
	part   float64 // of the values
	scale  float64 // beside that of the others
}

// The parts and scales that are tried for a peak.
var (
	peakParts  = [...]float64{.02, .05, .1, .2}
	peakScales = [...]float64{.05, .1, .2, .4}
)

const (
	leastPeak = 64 // values of a world before which no peak is looked for
	peakPrice = 4  // nats, plus the logarithm of the values, that a peak must be likelier than the law without it
)

// base is the scale of the other values that gives all together the mean distance 1.
func (p *peak) base() float64 { return 1 / (1 - p.part*(1-p.scale)) }

// below is the distribution function at a distance from the centre, in mean distances.
func (p *peak) below(z float64) float64 {
	b := p.base()
	return (1-p.part)*laplaceBelow(z/b) + p.part*laplaceBelow(z/(b*p.scale))
}

// peakOf fits a peak to the numbers of both worlds. better is the log-likelihood of the Laplace laws less that of the
// normal laws.
func peakOf(sorted [2][]float64, m [2]Spread, better float64) (best peak) {
	if min(m[0].n, m[1].n) < leastPeak {
		return best
	}
	var counts distances
	n := m[0].n + m[1].n
	for w := range sorted {
		counts.add(sorted[w], m[w].median, m[w].distance)
	}
	laws := peaks()
	without, top := counts.likelihood(&laws[0].logs), math.Inf(-1)
	for i := range laws[1:] {
		p := &laws[i+1]
		if gain := counts.likelihood(&p.logs) - without; gain > top {
			top, best = gain, p.peak
		}
	}
	best.weight = 1 / (1 + math.Exp(-(top + min(better, 0) - math.Log(n) - peakPrice)))
	if !(best.weight >= .01) {
		return peak{}
	}
	return best
}

// Distances from a centre are counted in four bins per octave, from 2^-leastOctave up.
const (
	leastOctave = 8
	octaves     = 12
)

type distances [4*octaves + 2]float64

// add counts sorted values, from a centre to both sides: their bins ascend.
func (d *distances) add(values []float64, center, unit float64) {
	bin := func(x float64) int { return distanceBin(math.Abs(x-center) / unit) }
	middle, _ := slices.BinarySearch(values, center)
	for i := middle; i < len(values); {
		b := bin(values[i])
		n := sort.Search(len(values)-i, func(k int) bool { return bin(values[i+k]) > b })
		d[b] += float64(n)
		i += n
	}
	for i := middle; i > 0; {
		b := bin(values[i-1])
		n := sort.Search(i, func(k int) bool { return bin(values[i-1-k]) > b })
		d[b] += float64(n)
		i -= n
	}
}

// distanceBin takes the exponent and two bits of the mantissa.
func distanceBin(z float64) int {
	return min(max(int(math.Float64bits(z)>>50)-4*(1023-leastOctave)+1, 0), len(distances{})-1)
}

// distanceEdge is the lower edge of a bin.
func distanceEdge(bin int) float64 {
	if bin == 0 {
		return 0
	}
	bin--
	return math.Ldexp(1+float64(bin%4)/4, bin/4-leastOctave)
}

// likelihood is the log-likelihood of the counts, given the logarithms of the probabilities of the bins.
func (d *distances) likelihood(logs *distances) (l float64) {
	for i, k := range d {
		if k > 0 {
			l += k * logs[i]
		}
	}
	return l
}

// peakLaw is a law of distances: the logarithms of the probabilities of the bins.
type peakLaw struct {
	peak
	logs distances
}

// peaks returns the law without a peak, and those of all that are tried.
var peaks = sync.OnceValue(func() (all []peakLaw) {
	all = []peakLaw{{peak: peak{scale: 1}}}
	for _, part := range peakParts {
		for _, scale := range peakScales {
			all = append(all, peakLaw{peak: peak{part: part, scale: scale}})
		}
	}
	for i := range all {
		l, from := &all[i], 0.0
		for bin := range l.logs {
			to := 1.0
			if bin+1 < len(l.logs) {
				to = 2*l.below(distanceEdge(bin+1)) - 1
			}
			l.logs[bin] = math.Log(max(to-from, 1e-300))
			from = to
		}
	}
	return all
})

// peakSteps are edges around each centre, in scales of the peak, and otherSteps those beside the middle of both, in
// mean distances.
var (
	peakSteps  = [...]float64{0, .35, 1, 2, 3.5}
	otherSteps = [...]float64{0, .25, .55, .87, 1.25, 1.75, 2.3, 3, 4.2, 6.5}
)

// peakEdges returns edges that show a peak around each centre.
func peakEdges(m [2]Spread, p *peak) (edges []float64) {
	middle, unit := m[0].median/2+m[1].median/2, max(m[0].distance, m[1].distance)
	for _, z := range otherSteps {
		edges = append(edges, middle-z*unit, middle+z*unit)
	}
	for _, x := range m {
		for _, z := range peakSteps {
			z *= p.base() * p.scale * x.distance
			edges = append(edges, x.median-z, x.median+z)
		}
	}
	slices.Sort(edges)
	edges = slices.Compact(edges)
	return slices.DeleteFunc(edges, func(x float64) bool { return math.IsInf(x, 0) || math.IsNaN(x) })
}

// fewTies reports whether at most one in 50 of sorted values is as great as the one before; nil stands for none.
func fewTies(values []float64) bool {
	ties := 0
	for i := 1; i < len(values); i++ {
		ties += code.Bit(values[i] == values[i-1])
	}
	return 50*ties <= len(values)
}
