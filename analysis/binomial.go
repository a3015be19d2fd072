package analysis

import (
	"math"

	"gonum.org/v1/gonum/mathext"
)

// ClopperPearson returns the exact interval for a probability from k successes in n independent trials: each end is
// passed by the truth with probability at most alpha/2 (Clopper and Pearson 1934). It returns 0 and 1 for n < 1 and
// for k or alpha out of range.
func ClopperPearson(k, n int, alpha float64) (lower, upper float64) {
	if n < 1 || k < 0 || k > n || !(alpha > 0 && alpha < 1) {
		return 0, 1
	}
	lower, upper = 0, 1
	x, m := float64(k), float64(n)
	if k > 0 {
		lower = mathext.InvRegIncBeta(x, m-x+1, alpha/2)
	}
	if k < n {
		upper = mathext.InvRegIncBeta(x+1, m-x, 1-alpha/2)
	}
	if math.IsNaN(lower) || math.IsNaN(upper) {
		return 0, 1
	}
	return lower, upper
}
