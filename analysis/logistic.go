package analysis

import (
	"math"

	"github.com/dpwatch/dpwatch/analysis/internal/code"
	"github.com/dpwatch/dpwatch/analysis/internal/fit"
)

// logistic fits the weights of the learned score: Newton's steps for the likelihood of a logistic regression, with a
// prior N(0, v) for every weight whose variance v is that which makes the past likeliest (MacKay 1992, automatic
// relevance determination). A weight that may be chance is drawn to 0 by its own noise.
type logistic struct {
	size     int
	hessian  [learnedFolds][]float64 // lower triangles, of the negative log-likelihood
	gradient [learnedFolds][]float64
	w        []float64
	variance []float64
	inverse  []float64
}

// Limits of the fit.
const (
	learnedFolds   = 8
	learnedCells   = 1 << 25 // pairs times features squared that curvature is summed over
	newtonSteps    = 5
	smallStep      = 1e-4 // nats per trial: a step that promises less is the last
	relevanceSteps = 8
	greatestPrior  = 4.0
	leastPrior     = 1e-8
)

// fit fits the learned score to the kept pairs and scores these out of fold. It reports whether anything was learned.
func (l *learned) fit(a *Audit, _ *series) (past [2][]code.Code, differ bool) {
	n := len(a.slots[0].past[0])
	if n < leastLearned || len(a.slots) > maxLearnedSlots {
		return past, false
	}
	l.choose(a.slots, a.reader.Cells(), &a.scratch)
	if len(l.features) < 3 {
		return past, false
	}
	var f logistic
	f.reset(len(l.features))
	for range newtonSteps {
		f.sum(l, a.slots, n)
		if step := f.step(); step < smallStep*float64(2*n) {
			break
		}
	}
	some := false
	for i := range l.features {
		l.features[i].weight = f.w[i]
		some = some || l.features[i].form != constantForm && math.Abs(f.w[i]) > 1e-6
		if math.IsNaN(f.w[i]) || math.IsInf(f.w[i], 0) {
			return past, false
		}
	}
	if !some {
		return past, false
	}
	for w := range l.scores {
		l.scores[w] = append(l.scores[w][:0], make([]code.Code, n)...)
	}
	var values [maxFeatures]float64
	var codes [maxLearnedSlots]code.Code
	for fold := range learnedFolds {
		weights := f.without(fold)
		for w := range l.scores {
			for k := fold; k < n; k += learnedFolds {
				l.fill(values[:], gather(&codes, a.slots, w, k))
				l.scores[w][k] = l.of(values[:f.size], weights)
			}
		}
	}
	return l.scores, true
}

func (f *logistic) reset(size int) {
	f.size = size
	for i := range learnedFolds {
		f.hessian[i], f.gradient[i] = make([]float64, size*size), make([]float64, size)
	}
	f.w, f.variance = make([]float64, size), make([]float64, size)
	f.inverse = make([]float64, size*size)
}

// sum writes gradient and curvature at the present weights, per fold.
func (f *logistic) sum(l *learned, slots []*series, n int) {
	for i := range learnedFolds {
		clear(f.hessian[i])
		clear(f.gradient[i])
	}
	stride := max(1, n*f.size*f.size/learnedCells)
	var values [maxFeatures]float64
	var codes [maxLearnedSlots]code.Code
	x := values[:f.size]
	for w := range 2 {
		for k := range n {
			l.fill(x, gather(&codes, slots, w, k))
			fold := k % learnedFolds
			logit := 0.0
			for i, v := range x {
				logit += v * f.w[i]
			}
			p := 1 / (1 + math.Exp(-logit)) // that the result is from D0
			g := f.gradient[fold]
			for i, v := range x {
				g[i] += (p - float64(1-w)) * v
			}
			if k/learnedFolds%stride != 0 {
				continue
			}
			curvature := max(p*(1-p), 1e-4) * float64(stride)
			h := f.hessian[fold]
			for i, v := range x {
				if v == 0 {
					continue
				}
				v *= curvature
				row := h[i*f.size : i*f.size+i+1]
				for j, y := range x[:len(row)] {
					row[j] += v * y
				}
			}
		}
	}
}

// step moves the weights to the most likely ones by the curvature at hand, the priors being fitted along with them. It
// returns what the move promises, in nats.
func (f *logistic) step() float64 {
	h, b := make([]float64, f.size*f.size), make([]float64, f.size) // b = H w - gradient
	for i := range learnedFolds {
		for j, x := range f.hessian[i] {
			h[j] += x
		}
		for j, x := range f.gradient[i] {
			b[j] -= x
		}
	}
	old := append([]float64(nil), f.w...)
	addProduct(b, h, old, f.size)
	for i := range f.variance {
		f.variance[i] = .25
	}
	f.variance[0] = greatestPrior
	for range relevanceSteps {
		if !f.invert(h) {
			return 0
		}
		for i := range f.w {
			f.w[i] = 0
			for j, x := range b {
				f.w[i] += f.inverse[i*f.size+j] * x
			}
		}
		for i := 1; i < f.size; i++ {
			known := 1 - f.inverse[i*f.size+i]/f.variance[i]
			f.variance[i] = min(max(f.w[i]*f.w[i]/max(known, 1e-3), leastPrior), greatestPrior)
		}
	}
	move, gain := make([]float64, f.size), make([]float64, f.size)
	for i := range move {
		move[i] = f.w[i] - old[i]
	}
	addProduct(gain, h, move, f.size)
	sum := 0.0
	for i, x := range gain {
		sum += x * move[i] / 2
	}
	// From the weights at hand on, gradients are those of the quadratic that was minimised.
	for k := range learnedFolds {
		addProduct(f.gradient[k], f.hessian[k], move, f.size)
	}
	return sum
}

// without returns the weights that the past without one fold would give, by one Newton step from those of all.
func (f *logistic) without(fold int) []float64 {
	h := make([]float64, f.size*f.size)
	for i := range learnedFolds {
		if i == fold {
			continue
		}
		for j, x := range f.hessian[i] {
			h[j] += x
		}
	}
	for i := range f.size {
		h[i*f.size+i] += 1 / f.variance[i]
	}
	move := append([]float64(nil), f.gradient[fold]...)
	if !fit.SolvePositive(h, move) {
		return f.w
	}
	for i := range move {
		move[i] += f.w[i]
	}
	return move
}

// invert sets the inverse of h + 1/variance.
func (f *logistic) invert(h []float64) bool {
	copy(f.inverse, h)
	for i := range f.size {
		f.inverse[i*f.size+i] += 1 / f.variance[i]
	}
	return fit.InvertPositive(f.inverse, f.size)
}

// addProduct adds the product of a symmetric matrix, given by its lower triangle, and a vector.
func addProduct(dst, lower, x []float64, n int) {
	for i := range n {
		for j := range i {
			dst[i] += lower[i*n+j] * x[j]
			dst[j] += lower[i*n+j] * x[i]
		}
		dst[i] += lower[i*n+i] * x[i]
	}
}
