package fit

import "math"

// Logistic is a logistic regression of the world on the features of a result. It takes Newton's steps for the
// likelihood, with a prior N(0, v) for every weight; the variance v of a weight is that which makes the past likeliest
// (MacKay 1992, automatic relevance determination). A weight that may be chance is drawn to 0 by its own noise. The
// first feature is the constant.
type Logistic struct {
	size     int
	row      []float64        // features of one result
	hessian  [Folds][]float64 // lower triangles, of the negative log-likelihood
	gradient [Folds][]float64
	w        []float64
	variance []float64
	inverse  []float64
}

// Folds is the number of parts of the past; pair k belongs to part k modulo Folds.
const Folds = 8

// Limits of the fit.
const (
	learnedCells   = 1 << 25 // pairs times features squared over which curvature is summed
	newtonSteps    = 5
	smallStep      = 1e-4 // nats per trial: the last step promises less
	relevanceSteps = 8
	greatestPrior  = 4.0
	leastPrior     = 1e-8
)

// NewLogistic returns a regression on so many features, with weights of 0.
func NewLogistic(features int) *Logistic {
	f := &Logistic{size: features, row: make([]float64, features)}
	for i := range Folds {
		f.hessian[i], f.gradient[i] = make([]float64, features*features), make([]float64, features)
	}
	f.w, f.variance = make([]float64, features), make([]float64, features)
	f.inverse = make([]float64, features*features)
	return f
}

// Fit fits the weights to n pairs. features writes the features of a result to dst.
func (f *Logistic) Fit(n int, features func(dst []float64, world, pair int)) {
	for range newtonSteps {
		f.sum(n, features)
		if step := f.step(); step < smallStep*float64(2*n) {
			break
		}
	}
}

// Weights returns the weights of the features.
func (f *Logistic) Weights() []float64 { return f.w }

// sum writes gradient and curvature at the present weights, per fold.
func (f *Logistic) sum(n int, features func(dst []float64, world, pair int)) {
	for i := range Folds {
		clear(f.hessian[i])
		clear(f.gradient[i])
	}
	stride := max(1, n*f.size*f.size/learnedCells)
	x := f.row
	for w := range 2 {
		for k := range n {
			features(x, w, k)
			fold := k % Folds
			logit := 0.0
			for i, v := range x {
				logit += v * f.w[i]
			}
			p := 1 / (1 + math.Exp(-logit)) // that the result is from D0
			g := f.gradient[fold]
			for i, v := range x {
				g[i] += (p - float64(1-w)) * v
			}
			if k/Folds%stride != 0 {
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

// step moves the weights to the most likely ones by the present curvature, and fits the priors with them. It returns
// the expected gain of the move, in nats.
func (f *Logistic) step() float64 {
	h, b := make([]float64, f.size*f.size), make([]float64, f.size) // b = H w - gradient
	for i := range Folds {
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
	// From now on the gradients are those of the quadratic that was minimised.
	for k := range Folds {
		addProduct(f.gradient[k], f.hessian[k], move, f.size)
	}
	return sum
}

// Without returns the weights that the past without one fold would give, by one Newton step from those of all.
func (f *Logistic) Without(fold int) []float64 {
	h := make([]float64, f.size*f.size)
	for i := range Folds {
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
	if !SolvePositive(h, move) {
		return f.w
	}
	for i := range move {
		move[i] += f.w[i]
	}
	return move
}

// invert sets the inverse of h + 1/variance.
func (f *Logistic) invert(h []float64) bool {
	copy(f.inverse, h)
	for i := range f.size {
		f.inverse[i*f.size+i] += 1 / f.variance[i]
	}
	return InvertPositive(f.inverse, f.size)
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
