package analysis

import (
	"math"
	"slices"
)

// BucketEstimate is the seeds' point estimate of epsilon from the counts of equal-width buckets on D0 (c0) and D1 (c1),
// as the code of dp_tester (sarus-tech/dp-testing, empirical_epsilon) computes it. It has no confidence statement.
//
// The buckets are sorted by c0/c1 descending; with FP = 1 - sum_{j<=i} c0/C and FN = sum_{j<=i} c1/C for each cut i,
// the estimate is the maximum of ln((1-delta-FP)/FN) and ln((1-delta-FN)/FP) over the cuts where both FP and FN rest on
// at least minCount trials. It can be negative.
//
// It returns NaN when no cut has enough counts (so also for worlds without any outcome in common), when the counts
// are empty or of different lengths, or when their totals differ; and +Inf for such worlds when minCount is 0.
func BucketEstimate(c0, c1 []int, delta float64, minCount int) float64 {
	total := 0
	for _, c := range c0 {
		total += c
	}
	other := 0
	for _, c := range c1 {
		other += c
	}
	if len(c0) == 0 || len(c0) != len(c1) || total != other || total <= 0 {
		return math.NaN()
	}
	best := math.NaN()
	keep := func(x float64) {
		if !math.IsNaN(x) && !(x <= best) {
			best = x
		}
	}
	n, fp, fn := float64(total), total, 0
	for _, j := range BucketOrder(c0, c1) {
		fp -= c0[j]
		fn += c1[j]
		if fp < minCount || fn < minCount {
			continue
		}
		p, q := float64(fp)/n, float64(fn)/n
		keep(math.Log((1 - delta - p) / q))
		keep(math.Log((1 - delta - q) / p))
	}
	return best
}

// BucketOrder sorts buckets by c0/c1 descending; buckets without any count come first, tied buckets in reversed order
// of index, as a reversed ascending sort leaves them.
func BucketOrder(c0, c1 []int) []int {
	ratio := make([]float64, len(c0))
	order := make([]int, len(c0))
	for j := range c0 {
		ratio[j] = float64(c0[j]) / float64(c1[j])
		if math.IsNaN(ratio[j]) {
			ratio[j] = math.Inf(1)
		}
		order[j] = len(c0) - 1 - j
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case ratio[a] > ratio[b]:
			return -1
		case ratio[a] < ratio[b]:
			return 1
		}
		return 0
	})
	return order
}

// bucketOf returns the equal-width bucket of x in [lo, hi].
func bucketOf(x, lo, hi float64, buckets int) int {
	part := (x/2 - lo/2) / (hi/2 - lo/2) // halves: the range may exceed the greatest float
	if !(part > 0) {
		return 0
	}
	return min(int(part*float64(buckets)), buckets-1)
}
