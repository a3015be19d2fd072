package show

import (
	"fmt"
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

// Lower formats a lower bound beside no claim; see analysis.LowerText.
func Lower(v analysis.Float) string { return analysis.LowerText(v, analysis.Float(math.NaN())) }

// Estimate formats the estimate of epsilon, as "below" if it is below the certified bound: its buckets miss what the
// bets find.
func Estimate(r analysis.Report) string {
	if r.EpsilonEstimate < r.EpsilonLower {
		return "below"
	}
	return Number(r.EpsilonEstimate)
}

// Finite returns nil for a value that JSON does not have.
func Finite(x float64) *float64 {
	if math.IsInf(x, 0) || math.IsNaN(x) {
		return nil
	}
	return &x
}

// Bounded formats x times scale; nil = the theorem has no bound.
func Bounded(x *float64, scale float64) string {
	if x == nil {
		return "no bound"
	}
	return fmt.Sprintf("%.4g", *x*scale)
}

// Percent formats a share of 1.
func Percent(share float64) string { return fmt.Sprintf("%.1f %%", 100*share) }

// Count formats a number, 0 as nothing.
func Count(n int64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}
