package score

import (
	"cmp"
	"math"
	"slices"

	"github.com/dpwatch/dpwatch/analysis/internal/code"
	"github.com/dpwatch/dpwatch/analysis/internal/event"
	"github.com/dpwatch/dpwatch/analysis/internal/fit"
	"github.com/dpwatch/dpwatch/analysis/internal/state"
	"github.com/dpwatch/dpwatch/internal/withheld"
)

// productsScore is a joint score that uses how the slots vary together in each world.
var productsScore = &kind{
	name: "joint_products", make: func(int) statistic { return new(products) }, where: severalSlots, several: .005,
	views: []event.View{event.Ascending}, lifetime: lifetime{pairs: 65, learned: 1, growth: 1.5}, event: JointEvent,
	phrase: func(in *Input, e *Event) withheld.Text {
		return withheld.Sprintf("numbers that vary together, %s", partWords(e.Parts))
	},
}

// products is a joint score that uses how the slots vary together in each world: the quadratic part of the
// log-likelihood ratio of two normal laws with one centre,
//
//	s(x) = x' (C1^-1 - C0^-1) x / 2
//
// with C0 and C1 the covariances of the standardised slots in the worlds, which differ in the correlations alone; other
// scores detect how far a slot varies. It detects what no slot and no sum of slots shows: noise that is correlated on
// D0 and not on D1, or with the other sign.
//
// It is bet on only where the mean product of two slots certainly differs between the worlds.
type products struct {
	slots         []int
	center, scale []float64
	reach         float64   // spreads at which values are clipped
	weights       []float64 // the lower triangle of the matrix, row by row, with twice the elements beside the diagonal
}

// Limits of the score.
const (
	maxProducts      = 24  // slots of the score
	productsPast     = 512 // kept pairs that are learned from
	productFolds     = 4
	certainProduct   = 12 // squared standard errors of a difference of mean products, plus 4 ln(products)
	maxProductsScore = 1 << 12
)

// productReaches are the spreads at which values may be clipped: what is left of noise with long tails by the smaller
// is little more than signs, which such noise does not blur.
var productReaches = [...]float64{6, 1}

// of scores the numbers of a result. A slot without a number counts as its center.
func (m *products) of(at func(slot int) code.Code) code.Code {
	var values [maxProducts]float64
	for i, slot := range m.slots {
		if c := at(slot); code.IsNumber(c) {
			values[i] = min(max((c-m.center[i])/m.scale[i], -m.reach), m.reach)
		}
	}
	return quadratic(values[:len(m.slots)], m.weights)
}

// quadratic is the sum of the weighted products of all pairs of values.
func quadratic(values, weights []float64) code.Code {
	sum, k := 0.0, 0
	for i, x := range values {
		for _, y := range values[:i+1] {
			sum += weights[k] * x * y
			k++
		}
	}
	return boundedCode(sum, maxProductsScore)
}

func (m *products) score(r *Result) code.Code { return m.of(r.at) }

func (m *products) words(in *Input, s *Series, set uint64) withheld.Text {
	return withheld.Sprintf("how %d partitions and columns vary together: %s", len(m.slots), in.binWords(s, set, nounOf("score", "scores")))
}

func (m *products) state(c *state.Codec) {
	state.List(c, &m.slots, func(x *int) { state.Num(c, x); c.Check(*x >= 0 && *x < c.Slots) })
	c.All(&m.center, &m.scale, &m.reach, &m.weights)
	n := len(m.slots)
	c.Check(n <= maxProducts && len(m.center) == n && len(m.scale) == n && (len(m.weights) == n*(n+1)/2 || n == 0))
}

// fit fits the score to the kept pairs, and returns these pairs' scores out of fold. It reports whether the past shows
// a difference.
func (m *products) fit(in *Input, s *Series) (scores [2][]code.Code, differ bool) {
	p := PortionOf(len(in.Slots[0].Past[0]), productsPast)
	var stay []int
	if s.Table != nil {
		stay = m.slots
	}
	d := &in.standard
	d.read(in.Slots, in.inTurn(len(in.Slots), mostMultiplied, 1, stay...), p, productReaches[0])
	if len(d.slots) < 2 {
		return scores, false
	}
	d.fillCenters()
	chosen := d.differing()
	top := math.Inf(-1)
	for _, reach := range productReaches[:min(len(chosen), len(productReaches))] {
		next := products{reach: reach}
		values := make([][2][]float64, len(chosen))
		for i, k := range chosen {
			for w, z := range d.values[k] {
				for j := range z {
					z[j] = min(max(z[j], -reach), reach)
				}
				values[i][w] = z
			}
			next.slots, next.center, next.scale = append(next.slots, d.slots[k]), append(next.center, d.center[k]), append(next.scale, d.scale[k])
		}
		past, ok := next.weigh(values, p.N)
		if !ok {
			continue
		}
		s := Series{kind: productsScore, Past: past}
		s.relearn(p.N, maxSpecialBins, &in.scratch)
		if z2 := event.Strength(in.null, s.Table, &in.order); z2 > top {
			top, differ, scores, *m = z2, true, past, next
		}
	}
	return scores, differ
}

// weigh sets the weights and returns the scores of the past out of fold.
func (m *products) weigh(values [][2][]float64, n int) (scores [2][]code.Code, ok bool) {
	m.weights = productWeights(values, func(int) bool { return true })
	if m.weights == nil {
		return scores, false
	}
	for w := range scores {
		scores[w] = make([]code.Code, n)
	}
	row := make([]float64, len(values))
	for fold := range productFolds {
		weights := productWeights(values, func(k int) bool { return k%productFolds != fold })
		if weights == nil {
			weights = m.weights
		}
		for w := range scores {
			for k := fold; k < n; k += productFolds {
				for i := range values {
					row[i] = values[i][w][k]
				}
				scores[w][k] = quadratic(row, weights)
			}
		}
	}
	return scores, true
}

// differing returns the slots of which a product with another has different means in the worlds, at most maxProducts of
// them, of the products that differ most; nil for none.
func (d *standard) differing() (chosen []int) {
	type product struct {
		i, j int
		z2   float64
	}
	n := len(d.slots)
	near := make([][2][]float64, n) // far out values blur a mean, where signs would show all
	for i, values := range d.values {
		for w, z := range values {
			near[i][w] = make([]float64, len(z))
			for k, x := range z {
				near[i][w][k] = min(max(x, -productReaches[1]), productReaches[1])
			}
		}
	}
	least := certainProduct + 4*math.Log(float64(n*(n-1)/2))
	var found []product
	for i := range n {
		for j := range i {
			z2 := max(productGap(&d.values[i], &d.values[j]), productGap(&near[i], &near[j]))
			if z2 > least {
				found = append(found, product{i, j, z2})
			}
		}
	}
	slices.SortFunc(found, func(a, b product) int {
		if a.z2 != b.z2 {
			return cmp.Compare(b.z2, a.z2)
		}
		return cmp.Or(a.i-b.i, a.j-b.j)
	})
	for _, f := range found {
		for _, k := range [2]int{f.i, f.j} {
			if len(chosen) < maxProducts && !slices.Contains(chosen, k) {
				chosen = append(chosen, k)
			}
		}
	}
	slices.Sort(chosen)
	return chosen
}

// productGap is by how many squared standard errors the mean product of two slots differs between the worlds.
func productGap(x, y *[2][]float64) float64 {
	var sum, squares, mean, variance [2]float64
	x0, x1, y0, y1 := x[0], x[1], y[0], y[1]
	for k := range min(len(x0), len(x1), len(y0), len(y1)) { // they have one length
		b0, b1 := x0[k]*y0[k], x1[k]*y1[k]
		sum[0], squares[0] = sum[0]+b0, squares[0]+b0*b0
		sum[1], squares[1] = sum[1]+b1, squares[1]+b1*b1
	}
	n := float64(len(x0))
	for w := range mean {
		mean[w] = sum[w] / n
		variance[w] = (squares[w]/n - mean[w]*mean[w]) / max(n-1, 1)
	}
	gap, noise := mean[0]-mean[1], variance[0]+variance[1]
	if !(noise > 1e-12) {
		return 0
	}
	return gap * gap / noise
}

// productWeights returns the lower triangle of (C1^-1 - C0^-1)/2, with twice the elements beside the diagonal, learned
// from the pairs that are taken. Each world's correlations are drawn towards those of both, and these towards 0, by the
// number of slots per trial. It returns nil where they cannot be inverted.
func productWeights(values [][2][]float64, taken func(k int) bool) []float64 {
	size := len(values)
	var c [2][]float64 // covariances, then correlations
	n := 0
	for w := range c {
		c[w] = make([]float64, size*size)
		for i := range size {
			for j := range i + 1 {
				sum := 0.0
				n = 0
				for k, x := range values[i][w] {
					if taken(k) {
						sum += x * values[j][w][k]
						n++
					}
				}
				c[w][i*size+j] = sum / max(float64(n), 1)
			}
		}
	}
	sd := make([]float64, size)
	for i := range sd {
		if sd[i] = math.Sqrt((c[0][i*size+i] + c[1][i*size+i]) / 2); !(sd[i] > 0) {
			return nil
		}
	}
	own := float64(n) / float64(n+size)
	both := float64(2*n) / float64(2*n+size)
	for i := range size {
		for j := range i {
			k := i*size + j
			for w := range c {
				if variance := c[w][i*size+i] * c[w][j*size+j]; variance > 0 {
					c[w][k] /= math.Sqrt(variance)
				} else {
					c[w][k] = 0
				}
			}
			pooled := both * (c[0][k] + c[1][k]) / 2
			for w := range c {
				c[w][k] = own*c[w][k] + (1-own)*pooled
			}
		}
	}
	for w := range c {
		for i := range size {
			c[w][i*size+i] = 1
		}
	}
	if !fit.InvertPositive(c[0], size) || !fit.InvertPositive(c[1], size) {
		return nil
	}
	var weights []float64
	for i := range size {
		for j := range i + 1 {
			half := .5
			if i != j {
				half = 1
			}
			weights = append(weights, half*(c[1][i*size+j]-c[0][i*size+j])/(sd[i]*sd[j]))
		}
	}
	return weights
}
