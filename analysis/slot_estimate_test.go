package analysis_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/dpwatch/dpwatch/analysis"
)

// TestEstimateWhileItGrows: reports on the way do not change the estimates of later ones, through growing ranges, new
// categories and thinned pasts; and they are those of the bucket estimator on all values.
func TestEstimateWhileItGrows(t *testing.T) {
	t.Parallel()
	const buckets = 20
	r := rand.New(rand.NewPCG(7, 7))
	fresh := func() *analysis.Audit {
		a, err := analysis.New(analysis.Claim{Epsilon: 1}, analysis.Options{MaxTrials: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		analysis.SkipBound(a)
		return a
	}
	often, once := fresh(), fresh()
	var values [2][]float64 // NaN for NULL
	draw := func(w int) analysis.Outcome {
		x := min(max(float64(w)+lap(r, 1), -4), 4) // soon the range grows no more, and a thinned past alone makes counts stale
		if r.IntN(10) == 0 {
			x = math.NaN()
		}
		values[w] = append(values[w], x)
		if math.IsNaN(x) {
			return analysis.Outcome{Rows: [][]analysis.Value{{{Kind: analysis.Null}}}}
		}
		return value(x)
	}
	same := func() {
		t.Helper()
		x, y := often.Report().Partitions, once.Report().Partitions
		if d := cmp.Diff(x, y, cmpopts.EquateNaNs()); d != "" {
			t.Fatalf("after %d pairs: reports on the way change the estimates:\n%s", len(values[0]), d)
		}
	}
	const unthinned = 5000
	for i := range 20_000 {
		x, y := draw(0), draw(1)
		often.Add(x, y)
		once.Add(x, y)
		if i%50 == 0 {
			often.Report()
		}
		if i+1 == unthinned {
			same()
			want := reference(values, buckets)
			if got := float64(once.Report().EpsilonEstimate); math.Abs(got-want) > 1e-9 {
				t.Errorf("%v, want %v of all values", got, want)
			}
		}
	}
	same()
}

// reference is the bucket estimator on equal-width buckets over the pooled range, and one of NULLs.
func reference(values [2][]float64, buckets int) float64 {
	lo, hi := math.Inf(1), math.Inf(-1)
	for _, xs := range values {
		for _, x := range xs {
			if !math.IsNaN(x) {
				lo, hi = min(lo, x), max(hi, x)
			}
		}
	}
	var counts [2][]int
	for w, xs := range values {
		counts[w] = make([]int, buckets+1)
		for _, x := range xs {
			at := buckets
			if !math.IsNaN(x) {
				at = min(int((x-lo)/(hi-lo)*float64(buckets)), buckets-1)
			}
			counts[w][at]++
		}
	}
	return analysis.BucketEstimate(counts[0], counts[1], 0, 5)
}
