package show

import (
	"math"
	"strconv"

	"github.com/dpwatch/dpwatch/analysis"
)

// Number formats a figure, "-" for NaN.
func Number(v analysis.Float) string {
	if math.IsNaN(float64(v)) {
		return "-"
	}
	return strconv.FormatFloat(float64(v), 'f', 3, 64)
}

// Finite returns nil for a value that JSON does not have.
func Finite(x float64) *float64 {
	if math.IsInf(x, 0) || math.IsNaN(x) {
		return nil
	}
	return &x
}
