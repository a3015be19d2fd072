// Package noise tests whether noise is what was declared: goodness of fit of (noisy - true) answers to Laplace,
// Gaussian or two-sided geometric noise of a declared scale, where the true answer is known (the query without noise on
// the shadow copy). Residuals go in, one p-value and an estimated scale ratio come out. Nothing is drawn or kept.
//
// Too little noise hints at a violation, too much is a matter of utility. Neither decides an audit: parameters are
// tested as declared, never fitted first, and residuals of several queries are pooled after division by their declared
// scales.
package noise

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// Family is a family of noise.
type Family uint8

// The families. The scale is b for Laplace, sigma for Gaussian, and b = 1/epsilon for geometric: P(k) proportional to
// e^(-|k|/b) on the integers.
const (
	Laplace Family = iota
	Gaussian
	Geometric
)

// String returns the name of a family.
func (f Family) String() string {
	switch f {
	case Laplace:
		return "laplace"
	case Gaussian:
		return "gaussian"
	case Geometric:
		return "geometric"
	}
	return fmt.Sprintf("family %d", uint8(f))
}

// Law is declared noise, centred at 0.
type Law struct {
	Family Family
	Scale  float64
}

// Reading is the seed's three-way label (DP-Generator-and-Tester).
type Reading string

// The readings.
const (
	Correct    Reading = "correct"     // the declared law is not refuted
	MinorError Reading = "minor_error" // refuted, but the scale is off by at most 50 %: wrong family, or a scale near by
	Wrong      Reading = "wrong"       // the scale is certainly off by more than 50 %
)

// Fit is the result of a test.
type Fit struct {
	N         int
	Test      string  // "kolmogorov_smirnov" or "chi_square"
	Statistic float64 // sup |F_n - F|, or chi-square
	PValue    float64
	// ScaleRatio is the estimated scale over the declared one, with an interval of at least the confidence asked for,
	// which is exact for Laplace and Gaussian noise and approximate (normal) for geometric, where it needs 20 residuals
	// that are not 0. It assumes the declared family.
	ScaleRatio, ScaleLower, ScaleUpper float64
	// Mean is the mean residual in declared scales. Far from 0 the true answer is wrong, or the noise is biased.
	Mean    float64
	Reading Reading
}

// leastResiduals is what the asymptotic law of the statistic needs.
const leastResiduals = 20

// Test compares residuals with a declared law. The reading holds at the confidence given. It returns an error for fewer
// than 20 residuals, residuals that are not finite, or not integers where the noise is geometric, and parameters out of
// range. The residuals are not changed.
func Test(residuals []float64, law Law, confidence float64) (Fit, error) {
	var faults []error
	if law.Family > Geometric {
		faults = append(faults, fmt.Errorf("no such noise: %v", law.Family))
	}
	if !(law.Scale > 0 && law.Scale <= math.MaxFloat64) {
		faults = append(faults, fmt.Errorf("the declared scale must be finite and positive, not %v", law.Scale))
	}
	if !(confidence > .5 && confidence < 1) {
		faults = append(faults, fmt.Errorf("confidence must lie between 0.5 and 1 (0.95, say), not %v", confidence))
	}
	if len(residuals) < leastResiduals {
		faults = append(faults, fmt.Errorf("%d residuals, at least %d are needed", len(residuals), leastResiduals))
	}
	for i, x := range residuals {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			faults = append(faults, fmt.Errorf("residual %d is %v", i+1, x))
			break
		}
		if law.Family == Geometric && x != math.Trunc(x) {
			faults = append(faults, fmt.Errorf("residual %d is %v: geometric noise is whole numbers", i+1, x))
			break
		}
	}
	if err := errors.Join(faults...); err != nil {
		return Fit{}, err
	}
	f := Fit{N: len(residuals)}
	if law.Family == Geometric {
		f.chiSquare(residuals, law.Scale)
	} else {
		f.kolmogorov(residuals, law)
	}
	alpha := (1 - confidence) / 2 // for the test and the interval each
	f.scale(residuals, law, alpha)
	f.read(alpha)
	return f, nil
}

// read sets the label. A scale that is off by more than 50 % is above 3/2 or below 1/2 of the declared.
func (f *Fit) read(alpha float64) {
	switch {
	case f.ScaleLower > 1.5 || f.ScaleUpper < .5:
		f.Reading = Wrong
	case f.PValue < alpha || f.ScaleLower > 1 || f.ScaleUpper < 1:
		f.Reading = MinorError
	default:
		f.Reading = Correct
	}
}

// CDF is the probability of x or less.
func (l Law) CDF(x float64) float64 {
	switch l.Family {
	case Laplace:
		if x > 0 {
			return 1 - .5*math.Exp(-x/l.Scale)
		}
		return .5 * math.Exp(x/l.Scale)
	case Gaussian:
		return .5 * math.Erfc(-x/(l.Scale*math.Sqrt2))
	}
	a := math.Exp(-1 / l.Scale)
	if x < 0 {
		return math.Pow(a, -math.Floor(x)) / (1 + a)
	}
	return 1 - math.Pow(a, math.Floor(x)+1)/(1+a)
}

// kolmogorov sets the Kolmogorov-Smirnov statistic and its p-value, by the limiting law with Stephens' (1970)
// correction of the sample size: good to three digits from 20 residuals on.
func (f *Fit) kolmogorov(residuals []float64, law Law) {
	xs := slices.Clone(residuals)
	slices.Sort(xs)
	n, d := float64(len(xs)), 0.0
	for i, x := range xs {
		c := law.CDF(x)
		d = max(d, c-float64(i)/n, float64(i+1)/n-c)
	}
	root := math.Sqrt(n)
	f.Test, f.Statistic, f.PValue = "kolmogorov_smirnov", d, kolmogorovTail((root+.12+.11/root)*d)
}

// kolmogorovTail is 2 sum (-1)^(k-1) e^(-2 k^2 x^2); below 1 by its theta transform, which converges there.
func kolmogorovTail(x float64) float64 {
	if x < .04 {
		return 1
	}
	if x < 1 {
		sum := 0.0
		for k := 1; k < 20; k += 2 {
			sum += math.Exp(-float64(k*k) * math.Pi * math.Pi / (8 * x * x))
		}
		return min(1, max(0, 1-math.Sqrt(2*math.Pi)/x*sum))
	}
	sum, sign := 0.0, 2.0
	for k := 1; k < 20; k++ {
		sum += sign * math.Exp(-2*float64(k*k)*x*x)
		sign = -sign
	}
	return min(1, max(0, sum))
}

// chiSquare compares counts of cells that are expected at least 5 times each, the tails in one cell a side (Pearson).
func (f *Fit) chiSquare(residuals []float64, scale float64) {
	law, n := Law{Geometric, scale}, float64(len(residuals))
	reach := 0.0 // the greatest m with n P(X > m) >= 5: cells -m..m and two tails
	for n*(1-law.CDF(reach+1)) >= 5 && reach < 1<<20 {
		reach++
	}
	width := 1.0 // cells of several values where one is expected too seldom
	for n*(law.CDF(reach)-law.CDF(reach-width)) < 5 && width <= reach {
		width++
	}
	var upper []float64 // cells are (upper[i-1], upper[i]]
	for x := -reach - 1; x < reach; x += width {
		upper = append(upper, x)
	}
	upper = append(upper, reach, math.Inf(1))
	observed := make([]float64, len(upper))
	for _, x := range residuals {
		at, _ := slices.BinarySearch(upper, x)
		observed[at]++
	}
	stat, last, cells := 0.0, 0.0, 0
	expected, seen := 0.0, 0.0
	for i, u := range upper {
		c := 1.0
		if i < len(upper)-1 {
			c = law.CDF(u)
		}
		expected, seen, last = expected+n*(c-last), seen+observed[i], c
		if expected >= 5 || i == len(upper)-1 && expected > 0 {
			stat += (seen - expected) * (seen - expected) / expected
			expected, seen = 0, 0
			cells++
		}
	}
	f.Test, f.Statistic, f.PValue = "chi_square", stat, 1
	if cells > 1 {
		f.PValue = distuv.ChiSquared{K: float64(cells - 1)}.Survival(stat)
	}
}

// scale estimates the ratio of scales. For Laplace 2 sum|x|/b has the chi-square law of 2n degrees, for Gaussian
// sum x^2/sigma^2 that of n. For geometric noise E|x| = 2a/(1-a^2), a = e^(-1/b), is solved at the ends of a normal
// interval.
func (f *Fit) scale(residuals []float64, law Law, alpha float64) {
	n := float64(len(residuals))
	absolute, square, sum := 0.0, 0.0, 0.0
	for _, x := range residuals {
		x /= law.Scale
		absolute, square, sum = absolute+math.Abs(x), square+x*x, sum+x
	}
	f.Mean = sum / n
	switch law.Family {
	case Laplace:
		chi := distuv.ChiSquared{K: 2 * n}
		f.ScaleRatio = absolute / n
		f.ScaleLower, f.ScaleUpper = 2*absolute/chi.Quantile(1-alpha/2), 2*absolute/chi.Quantile(alpha/2)
	case Gaussian:
		chi := distuv.ChiSquared{K: n}
		f.ScaleRatio = math.Sqrt(square / n)
		f.ScaleLower, f.ScaleUpper = math.Sqrt(square/chi.Quantile(1-alpha/2)), math.Sqrt(square/chi.Quantile(alpha/2))
	case Geometric:
		mean := absolute / n * law.Scale
		deviation := math.Sqrt(max(0, square/n*law.Scale*law.Scale-mean*mean) / n)
		z := distuv.UnitNormal.Quantile(1 - alpha/2)
		f.ScaleRatio = geometricScale(mean) / law.Scale
		f.ScaleLower, f.ScaleUpper = geometricScale(mean-z*deviation)/law.Scale, geometricScale(mean+z*deviation)/law.Scale
	}
}

// geometricScale solves m = 2a/(1-a^2) for b = -1/ln a.
func geometricScale(m float64) float64 {
	if m <= 0 {
		return 0
	}
	a := (math.Sqrt(1+m*m) - 1) / m
	return -1 / math.Log(a)
}
