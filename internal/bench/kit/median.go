package kit

import "slices"

// Median sorts values and returns the middle one, the upper of two.
func Median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}
