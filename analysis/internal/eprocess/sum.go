package eprocess

import "math"

// LogSumExp returns ln(sum(exp(x))), minus infinity for none. NaN counts as no wealth, so that one wrong place does not
// hide the others.
func LogSumExp(x []float64) float64 {
	top := math.Inf(-1)
	for _, v := range x {
		if v > top {
			top = v
		}
	}
	if math.IsInf(top, -1) {
		return top
	}
	sum := 0.0
	for _, v := range x {
		if d := v - top; d > -40 {
			sum += math.Exp(d)
		}
	}
	return top + math.Log(sum)
}

// LogAdd returns ln(e^a + e^b). NaN counts as minus infinity.
func LogAdd(a, b float64) float64 {
	if !(a >= b) { // or one is not a number
		a, b = b, a
	}
	if math.IsNaN(a) {
		a, b = b, a
	}
	if math.IsNaN(a) {
		return math.Inf(-1)
	}
	if !(b > math.Inf(-1)) {
		return a
	}
	return a + math.Log1p(math.Exp(b-a))
}
