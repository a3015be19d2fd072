package score

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/dpwatch/dpwatch/analysis/internal/code"
	"github.com/dpwatch/dpwatch/analysis/internal/event"
	"github.com/dpwatch/dpwatch/internal/withheld"
)

// totalScore is a sum of columns or groups in which their noise cancels out: groups that are scaled to the true total,
// noise that adds up to zero, any linear relation (an invariant of the data) that holds more exactly than the noise of
// its parts allows.
var totalScore = &kind{
	name: "total", make: func(int) statistic { return new(total) }, where: severalSlots, several: .005,
	views: []event.View{event.Ascending, event.Sorted}, lifetime: lifetime{pairs: 65, learned: 1, growth: 1.5}, event: JointEvent,
	phrase: func(_ *Input, e *Event) withheld.Text {
		return withheld.Sprintf("a sum of columns or groups in which their noise cancels out, %s", partWords(e.Parts))
	},
}

type total struct{ combination }

// Limits of the score.
const (
	leastTotal    = 3  // slots
	leastTotalled = 16 // kept pairs that are learned from
	pairsASlot    = 2  // for that
	leastExact    = .5 // of the noise of its parts must cancel out in the total of a column
	exactRelation = .02
)

func (m *total) fit(in *Input, s *Series) (past [2][]code.Code, differ bool) {
	if len(in.Slots) < leastTotal {
		return past, false
	}
	m.combination = in.learnTotal(m.stays(s))
	return m.ofAllPast(in)
}

func (m *total) weights(in *Input) []float64 {
	weights := make([]float64, len(in.Slots))
	for i := range m.terms {
		weights[m.terms[i].slot] = 1
	}
	return weights
}

// learnTotal returns the sum that separates the worlds best, without terms if there is none.
func (in *Input) learnTotal(stay []int) combination {
	best, top := combination{}, float64(leastContrast)
	n := len(in.Slots)
	p := PortionOf(len(in.Slots[0].Past[0]), min(maxContrastPairs, max(leastTotalled, maxContrastPairs*mostNeighbours/n)))
	d := &in.standard
	if d.read(in.Slots, in.inTurn(n, n, 1), p, math.MaxFloat64); len(d.slots) < leastTotal {
		return best
	}
	d.fillCenters()
	consider := func(weights []float64, least float64) {
		variance, parts, gap2 := d.moments(weights, p.N)
		if !(parts > 0) || variance > least*parts {
			return
		}
		variance = max(variance, 0x1p-40*parts) // rounding errors must not look like a difference
		if z2 := gap2 / variance * float64(p.N) / 2; z2 > top {
			top, best = z2, d.combine(weights, math.MaxFloat64)
		}
	}
	cells := in.Reader.Cells()
	for column := range cells {
		widest := 0.0
		for i, slot := range d.slots {
			if slot%cells == column {
				widest = max(widest, d.scale[i])
			}
		}
		weights, n := make([]float64, len(d.slots)), 0
		for i, slot := range d.slots {
			if slot%cells == column {
				weights[i] = d.scale[i] / widest
				n++
			}
		}
		if n >= leastTotal {
			consider(weights, leastExact)
		}
	}
	few := len(d.slots)
	if few > mostRelated {
		few = someRelated
	}
	if p.N >= pairsASlot*few {
		var kept []int
		for i, slot := range d.slots {
			if len(kept) < few && slices.Contains(stay, slot) {
				kept = append(kept, i)
			}
		}
		if relation := d.relation(in.inTurn(len(d.slots), few, 1, kept...), p.N); relation != nil {
			consider(relation, exactRelation)
		}
	}
	return best
}

// moments returns the variance of a weighted sum of slots within the worlds, what it would be if the slots were
// independent, and the squared difference between the worlds' means.
func (d *standard) moments(weights []float64, n int) (variance, parts, gap2 float64) {
	sums := make([]float64, n)
	var means [2]float64
	for w := range means {
		clear(sums)
		for i, weight := range weights {
			if weight == 0 {
				continue
			}
			mean, squares := meanOf(d.values[i][w])
			parts += weight * weight * squares / float64(2*n)
			for k, z := range d.values[i][w] {
				sums[k] += weight * (z - mean)
			}
			means[w] += weight * mean
		}
		for _, x := range sums {
			variance += x * x / float64(2*n)
		}
	}
	gap := means[0] - means[1]
	return variance, parts, gap * gap
}

// meanOf returns the mean and the sum of squares around it.
func meanOf(xs []float64) (mean, squares float64) {
	for _, x := range xs {
		mean += x / float64(len(xs))
	}
	for _, x := range xs {
		squares += (x - mean) * (x - mean)
	}
	return mean, squares
}

// relation returns the weights of the sum of chosen slots that varies least within the worlds, nil if that cannot be
// computed: the last principal component.
func (d *standard) relation(chosen []int, n int) []float64 {
	p := len(chosen)
	centred := mat.NewDense(p, 2*n, nil)
	for i, k := range chosen {
		for w, zs := range d.values[k] {
			mean, _ := meanOf(zs)
			for k, z := range zs {
				centred.Set(i, w*n+k, z-mean)
			}
		}
	}
	var covariance mat.SymDense
	covariance.SymOuterK(1, centred)
	var eigen mat.EigenSym
	if !eigen.Factorize(&covariance, true) {
		return nil
	}
	var vectors mat.Dense
	eigen.VectorsTo(&vectors)
	weights := make([]float64, len(d.slots))
	for i, k := range chosen {
		weights[k] = vectors.At(i, 0) // of the smallest value
	}
	return weights
}
