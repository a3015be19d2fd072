// Package curve describes claims that are a privacy curve: for every epsilon, the delta with which an answer is
// (epsilon, delta)-differentially private.
//
// In: the text of a curve, of a flag, a comment, a setting or a configuration. Out: its points. It is pure.
package curve

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Curve is a privacy curve in its canonical text form, "" = none: "mu=0.268" (Gaussian differential privacy), "rho=0.5"
// (zero-concentrated differential privacy) or "(0.5,0.004) (1,1e-05)" (all of these points hold).
type Curve string

// Point is one (epsilon, delta) of a curve.
type Point struct {
	Epsilon float64 `json:"epsilon"`
	Delta   float64 `json:"delta"`
}

// The units of a curve.
const (
	Mu   = "mu"
	Rho  = "rho"
	List = "list"
)

// Limits of a curve.
const (
	leastMu, mostMu = 1e-6, 30.0
	mostEpsilon     = 1000
	mostPoints      = 32
)

// Units returns the units of a curve with one parameter.
func Units() []string { return []string{Mu, Rho} }

// form is what Parse and New say about texts that are no curve.
const form = `write mu=NUMBER, rho=NUMBER or a list of points like "(0,0.1) (0.5,0.004) (1,1e-5)"`

// Parse returns the curve of a text. The error says what is wrong and contains nothing of the text.
func Parse(text string) (Curve, error) {
	text = strings.TrimSpace(text)
	if strings.HasPrefix(text, "(") {
		return parseList(text)
	}
	unit, value, found := strings.Cut(text, "=")
	if !found {
		return "", errors.New("is no curve: " + form)
	}
	x, err := number(value)
	if err != nil {
		return "", err
	}
	return New(strings.TrimSpace(unit), x)
}

// number parses a decimal number.
func number(text string) (float64, error) {
	text = strings.TrimSpace(text)
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(x) || math.IsInf(x, 0) || strings.ContainsAny(text, "xXpP_") {
		return 0, errors.New("has a part that is not a number: " + form)
	}
	return x, nil
}

// New returns the curve with a parameter in a unit, Mu or Rho.
func New(unit string, x float64) (Curve, error) {
	least, most := leastMu, mostMu
	switch unit {
	case Mu:
	case Rho:
		least, most = leastMu*leastMu/2, mostMu*mostMu/2
	default:
		return "", errors.New("has an unknown unit: " + form)
	}
	if !(x >= least && x <= most) {
		return "", fmt.Errorf("%s must be a number from %g to %g", unit, least, most)
	}
	return Curve(unit + "=" + text(x)), nil
}

func text(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

// Of returns the curve of a single point, which must be a claim.
func Of(epsilon, delta float64) Curve { return listOf([]Point{{epsilon, delta}}) }

func listOf(points []Point) Curve {
	var all []string
	for _, p := range points {
		all = append(all, "("+text(p.Epsilon)+","+text(p.Delta)+")")
	}
	return Curve(strings.Join(all, " "))
}

// parseList parses points in parentheses, separated by spaces or commas.
func parseList(text string) (Curve, error) {
	var points []Point
	for rest := text; rest != ""; {
		inner, after, found := strings.Cut(strings.TrimPrefix(rest, "("), ")")
		if !found || !strings.HasPrefix(rest, "(") {
			return "", errors.New("is no list of points in parentheses: " + form)
		}
		left, right, found := strings.Cut(inner, ",")
		if !found {
			return "", errors.New("has a point that is not of the form (epsilon,delta): " + form)
		}
		epsilon, err := number(left)
		if err != nil {
			return "", err
		}
		delta, err := number(right)
		if err != nil {
			return "", err
		}
		points = append(points, Point{epsilon, delta})
		rest = strings.TrimLeft(after, " \t\r\n,;")
	}
	slices.SortFunc(points, func(a, b Point) int {
		if a.Epsilon < b.Epsilon {
			return -1
		}
		return 1
	})
	if len(points) > mostPoints {
		return "", fmt.Errorf("has %d points: give at most %d", len(points), mostPoints)
	}
	for i, p := range points {
		switch {
		case !(p.Epsilon >= 0 && p.Epsilon <= mostEpsilon):
			return "", fmt.Errorf("has a point with an epsilon that is not a number from 0 to %d", mostEpsilon)
		case !(p.Delta >= 0 && p.Delta < 1):
			return "", errors.New("has a point with a delta that is not at least 0 and less than 1")
		case i > 0 && !(p.Epsilon > points[i-1].Epsilon && p.Delta < points[i-1].Delta):
			return "", errors.New("has a point that another one implies: a larger epsilon needs a smaller delta")
		}
	}
	return listOf(points), nil
}

// Unit returns the unit: Mu, Rho or List.
func (c Curve) Unit() string {
	unit, _, found := strings.Cut(string(c), "=")
	if !found {
		return List
	}
	return unit
}

// Parameter returns the parameter of a curve in Mu or Rho, otherwise NaN.
func (c Curve) Parameter() float64 {
	_, value, found := strings.Cut(string(c), "=")
	x, err := strconv.ParseFloat(value, 64)
	if !found || err != nil {
		return math.NaN()
	}
	return x
}

// list returns the points of a list.
func (c Curve) list() (points []Point) {
	for _, p := range strings.Fields(string(c)) {
		left, right, _ := strings.Cut(strings.Trim(p, "()"), ",")
		epsilon, _ := strconv.ParseFloat(left, 64) // the form is canonical
		delta, _ := strconv.ParseFloat(right, 64)
		points = append(points, Point{epsilon, delta})
	}
	return points
}

// mostNulls is the number of points at which a curve is tested.
const mostNulls = 4

// depths are where a curve with one parameter is tested, in standard deviations of the privacy loss from its mean.
var depths = []float64{.6, 1.8, 3.6}

// uselessDelta is a delta with which almost everything is allowed.
const uselessDelta = .999

// Points returns the points at which the curve is tested, at most four, in the order of their epsilons. A curve with one
// parameter has epsilon 0 among them, as long as its delta there is below 1.
func (c Curve) Points() (points []Point) {
	if c.Unit() == List {
		all := c.list()
		if len(all) <= mostNulls {
			return all
		}
		for i := range mostNulls {
			points = append(points, all[i*(len(all)-1)/(mostNulls-1)])
		}
		return points
	}
	mean := c.Parameter()
	if c.Unit() == Mu {
		mean = mean * mean / 2
	}
	for _, z := range append([]float64{math.Inf(-1)}, depths...) {
		epsilon := rounded(max(0, mean+z*math.Sqrt(2*mean)), 3, math.Round)
		if delta := rounded(c.Delta(epsilon), 4, math.Ceil); delta < uselessDelta {
			points = append(points, Point{epsilon, delta})
		}
	}
	return points
}

// rounded rounds to a number of significant digits.
func rounded(x float64, digits int, round func(float64) float64) float64 {
	if x == 0 {
		return 0
	}
	unit := math.Pow(10, float64(digits)-1-math.Floor(math.Log10(math.Abs(x))))
	if math.IsInf(unit, 0) {
		return x
	}
	return round(x*unit) / unit
}

// Headline returns the point by which the curve is known where one (epsilon, delta) is needed: the one with the smallest
// delta of those at which it is tested.
func (c Curve) Headline() Point {
	points := c.Points()
	return points[len(points)-1]
}

// Tighter reports whether a claim of c implies the other one at every point at which that is tested.
func (c Curve) Tighter(than Curve) bool {
	if c.Unit() != List && c.Unit() == than.Unit() {
		return c.Parameter() <= than.Parameter()
	}
	for _, p := range than.Points() {
		if c.Delta(p.Epsilon) > p.Delta*(1+1e-9) {
			return false
		}
	}
	return true
}

// Add returns the curve of two answers together, ok = false if there is none with one parameter.
func (c Curve) Add(d Curve) (sum Curve, ok bool) {
	if c == "" || d == "" || c.Unit() == List || d.Unit() == List {
		return "", false
	}
	x, y := c.Parameter(), d.Parameter()
	if c.Unit() == Mu && d.Unit() == Mu {
		sum, err := New(Mu, math.Hypot(x, y))
		return sum, err == nil
	}
	if c.Unit() == Mu { // its privacy loss is that of a Gaussian mechanism, whose rho is mu^2/2
		x = x * x / 2
	}
	if d.Unit() == Mu {
		y = y * y / 2
	}
	sum, err := New(Rho, x+y)
	return sum, err == nil
}

// Max returns the looser one of two curves, ok = false if neither implies the other.
func (c Curve) Max(d Curve) (loosest Curve, ok bool) {
	switch {
	case c == "" || d == "":
		return "", false
	case c == d || c.Tighter(d):
		return d, true
	case d.Tighter(c):
		return c, true
	}
	return "", false
}

// Lower returns the curve of the same unit below which no parameter is possible, if delta exceeds the one of a point at
// its epsilon; "" if there is none.
func (c Curve) Lower(p Point) Curve {
	unit := c.Unit()
	if unit == List {
		return ""
	}
	lo, hi := leastMu, mostMu
	if unit == Rho {
		lo, hi = leastMu*leastMu/2, mostMu*mostMu/2
	}
	at := func(x float64) bool { return Curve(unit+"="+text(x)).Delta(p.Epsilon) > p.Delta }
	if at(lo) || !at(hi) {
		return ""
	}
	for hi/lo > 1+1e-6 {
		if middle := math.Sqrt(lo * hi); at(middle) {
			hi = middle
		} else {
			lo = middle
		}
	}
	return Curve(unit + "=" + text(rounded(lo, 3, math.Floor)))
}
