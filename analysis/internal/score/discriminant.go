package score

import (
	"math"

	"github.com/dpwatch/dpwatch/analysis/internal/code"
	"github.com/dpwatch/dpwatch/analysis/internal/event"
	"github.com/dpwatch/dpwatch/analysis/internal/fit"
)

// discriminantScore is a joint score that uses how the slots vary together.
var discriminantScore = &kind{
	name: "joint_linear", make: func(int) statistic { return new(discriminant) }, where: severalSlots,
	several: .03, views: []event.View{event.Ascending}, event: JointEvent,
}

// discriminant is a joint score that uses how the slots vary together: Fisher's linear discriminant
//
//	s(x) = (m0-m1)' C^-1 x
//
// with C the covariance within the worlds. Where noise is shared between columns or groups, it weighs them so that the
// shared part cancels. Up to fullDiscriminant slots C is the sample's, shrunk towards zero correlation by the factor
// slots/(slots+trials); beyond, C is that of one common factor per column (noise of its own in every group, and noise
// that all of a column's groups share in part), whose inverse takes O(slots).
//
// It is bet on only if a correlation is significant: without it, the other joint scores detect the same.
type discriminant struct {
	combination
	scores [2][]code.Code // per world: out-of-fold scores of the past
}

// Limits of the discriminant.
const (
	fullDiscriminant  = 24
	maxDiscriminant   = 1024 // the most slots that are used
	discriminantPast  = 1024 // kept pairs that are learned from
	discriminantCells = 1 << 17
	leastCorrelation  = 30 // squared z-score of a significant correlation, plus 4 ln(slots) for multiple testing
	leastUnshared     = 1e-6
)

// fit fits the score to the kept pairs, and scores these out of fold. It returns false if no correlation is
// significant.
func (m *discriminant) fit(in *Input, _ *Series) (past [2][]code.Code, differ bool) {
	if len(in.Slots) < 2 {
		return past, false
	}
	slots := in.Slots[:min(len(in.Slots), maxDiscriminant)]
	most := min(discriminantPast, max(256, discriminantCells/len(slots)))
	p := PortionOf(len(slots[0].Past[0]), most)
	d := &in.standard
	d.read(slots, p, clipAt)
	if len(d.slots) < 2 || p.N < 2*leastJoint {
		return past, false
	}
	d.fillCenters()
	cells := in.Reader.Cells()
	all := d.direct(cells, 0, 1)
	if all == nil {
		return past, false
	}
	for w := range m.scores {
		m.scores[w] = append(m.scores[w][:0], make([]code.Code, p.N)...)
	}
	for fold := range folds {
		weights := d.direct(cells, 1-fold, folds) // the other of the two
		if weights == nil {
			weights = all
		}
		part := d.combine(weights, clipAt)
		for w, scores := range m.scores {
			for k := fold; k < p.N; k += folds {
				scores[k] = part.of(func(slot int) code.Code { return slots[slot].Past[w][p.At(k)] })
			}
		}
	}
	m.combination = d.combine(all, clipAt)
	return m.scores, true
}

func (m *discriminant) weights(in *Input) []float64 { return in.termGaps(m.terms) }

// direct returns the discriminant's weights of the standardised slots, learned from the pairs from, from+stride, ...;
// nil if no correlation is significant.
func (d *standard) direct(cells, from, stride int) []float64 {
	means := make([][2]float64, len(d.slots))
	n := 0
	for i := range d.slots {
		for w := range 2 {
			n = 0
			for z := d.values[i][w]; n*stride+from < len(z); n++ {
				means[i][w] += z[n*stride+from]
			}
			means[i][w] /= float64(n)
		}
	}
	least := leastCorrelation + 4*math.Log(float64(len(d.slots)))
	if len(d.slots) <= fullDiscriminant {
		return d.directFull(means, n, least, from, stride)
	}
	return d.directFactor(means, n, cells, least, from, stride)
}

// directFull solves with the shrunk correlation matrix.
func (d *standard) directFull(means [][2]float64, n int, least float64, from, stride int) []float64 {
	size := len(d.slots)
	c := make([]float64, size*size)
	for i := range size {
		for j := range i + 1 {
			for w := range 2 {
				x, y := d.values[i][w], d.values[j][w]
				for k := from; k < len(x); k += stride {
					c[i*size+j] += (x[k] - means[i][w]) * (y[k] - means[j][w])
				}
			}
		}
	}
	trials := float64(2 * n)
	part := float64(size) / (float64(size) + trials) // by which correlations are shrunk towards zero
	sd := make([]float64, size)
	for i := range size {
		if sd[i] = math.Sqrt(c[i*size+i]); !(sd[i] > 0) {
			return nil
		}
	}
	top := 0.0
	for i := range size {
		for j := range i {
			r := c[i*size+j] / (sd[i] * sd[j])
			top = max(top, r*r)
			c[i*size+j] = (1 - part) * r
		}
		c[i*size+i] = 1
	}
	if trials*top < least {
		return nil
	}
	weights := make([]float64, size)
	unit := math.Sqrt(trials)
	for i := range weights {
		weights[i] = (means[i][0] - means[i][1]) * unit / sd[i]
	}
	if !fit.SolvePositive(c, weights) {
		return nil
	}
	for i := range weights {
		weights[i] *= unit / sd[i]
	}
	return weights
}

// directFactor fits u_i = l_i f + own noise of variance 1-l_i^2 to the slots of each column, u standardised to variance
// 1. With k slots in a column, r their mean correlation and F the mean of u, k var(F) - 1 = (k-1) r and, approximately,
// k cov(u_i, F) - 1 = (k-1) l_i sqrt(r). The inverse is that of Woodbury: C^-1 b = D^-1 b - D^-1 l (l' D^-1 b)/(1 + l'
// D^-1 l).
func (d *standard) directFactor(means [][2]float64, n, cells int, least float64, from, stride int) []float64 {
	weights := make([]float64, len(d.slots))
	inverse := make([]float64, len(d.slots)) // 1/sd
	cov := make([]float64, len(d.slots))
	trials := float64(2 * n)
	some := false
	for column := range cells {
		var members []int
		var factor [2][]float64
		for w := range factor {
			factor[w] = make([]float64, len(d.values[0][w]))
		}
		for i, slot := range d.slots {
			if slot%cells != column {
				continue
			}
			variance := 0.0
			for w := range 2 {
				for k, z := from, d.values[i][w]; k < len(z); k += stride {
					variance += (z[k] - means[i][w]) * (z[k] - means[i][w]) / trials
				}
			}
			if !(variance > 0) {
				continue
			}
			members = append(members, i)
			inverse[i] = 1 / math.Sqrt(variance)
			for w := range 2 {
				for k, z := from, d.values[i][w]; k < len(z); k += stride {
					factor[w][k] += (z[k] - means[i][w]) * inverse[i]
				}
			}
		}
		size := float64(len(members))
		if size < 3 {
			continue
		}
		square := 0.0 // variance of k F
		for w := range 2 {
			for k := from; k < len(factor[w]); k += stride {
				square += factor[w][k] * factor[w][k] / trials
			}
		}
		shared := (square/size - 1) / (size - 1)
		// Without correlation square/size is about 1 with variance 2/trials.
		if z := (square/size - 1) / math.Sqrt(2/trials); !(z > 0) || z*z < least {
			continue
		}
		some = true
		var projected, precision float64
		for _, i := range members {
			for w := range 2 {
				for k, z := from, d.values[i][w]; k < len(z); k += stride {
					cov[i] += (z[k] - means[i][w]) * inverse[i] * factor[w][k] / trials
				}
			}
			load := min(max((cov[i]-1)/((size-1)*math.Sqrt(shared)), -1), 1)
			own := max(1-load*load, leastUnshared)
			cov[i] = load / own // now l / D
			weights[i] = (means[i][0] - means[i][1]) * inverse[i] / own
			projected += load * weights[i]
			precision += load * cov[i]
		}
		for _, i := range members {
			weights[i] = (weights[i] - cov[i]*projected/(1+precision)) * inverse[i]
		}
	}
	if !some {
		return nil
	}
	return weights
}
