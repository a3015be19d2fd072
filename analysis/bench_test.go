package analysis_test

import (
	"math/rand/v2"
	"testing"

	"github.com/dpwatch/dpwatch/analysis"
)

// BenchmarkSingle is whole audits of 10,000 pairs of a single value.
func BenchmarkSingle(b *testing.B) { benchmark(b, 1, 10_000) }

// BenchmarkGroups is whole audits of 10,000 pairs of 200 groups.
func BenchmarkGroups(b *testing.B) { benchmark(b, 200, 10_000) }

// benchmark audits a right mechanism. The noise is drawn into the same results again and again, so that little but the
// audit is timed; the audit keeps a few of them to learn the keys from, which do not change.
func benchmark(b *testing.B, n, pairs int) {
	r := rand.New(rand.NewPCG(1, 2))
	x := groups(make([]float64, n)...)
	y := groups(make([]float64, n)...)
	b.ReportAllocs()
	for b.Loop() {
		a, err := analysis.New(analysis.Claim{Epsilon: 1}, analysis.Options{MaxTrials: pairs})
		if err != nil {
			b.Fatal(err)
		}
		for range pairs {
			for i := range n {
				x.Rows[i][1].Num = lap(r, 1)
				y.Rows[i][1].Num = lap(r, 1)
			}
			y.Rows[0][1].Num++
			a.Add(x, y)
		}
		a.Report()
	}
	b.ReportMetric(float64(pairs)*float64(b.N)/b.Elapsed().Seconds(), "pairs/s")
}
