package fit

import "math"

// Grain rounds a score, so that sums which differ by rounding errors alone are equal.
func Grain(x float64) float64 { return math.Round(x*0x1p32) * 0x1p-32 }

// ShrunkLogRatio estimates ln of the ratio of two probabilities.
func ShrunkLogRatio(k0, k1, n0, n1 float64) float64 {
	e := (math.Log(k0+.5) - math.Log(k1+.5)) + (math.Log(n1+1) - math.Log(n0+1))
	return Shrink(e, (1/(k0+.5)+1/(k1+.5))-(1/(n0+1)+1/(n1+1)))
}

// Shrink moves an estimate with the given variance towards 0.
func Shrink(e, variance float64) float64 {
	if e == 0 {
		return 0
	}
	return e * (e * e / (e*e + max(variance, 0)))
}
