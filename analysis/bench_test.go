package analysis_test

import (
	"math/rand/v2"
	"testing"

	"github.com/dpwatch/dpwatch/analysis"
)

// BenchmarkSingle is pairs of a single value, a whole audit of 10,000 pairs at a time.
func BenchmarkSingle(b *testing.B) {
	benchmark(b, 10_000, laplaceShift(.9))
}

// BenchmarkGroups is whole audits of 10,000 pairs of 200 groups.
func BenchmarkGroups(b *testing.B) {
	benchmark(b, 10_000, many(200, oneOf(17, 1)))
}

// benchmark makes a stock of results first, so that the audit alone is timed.
func benchmark(b *testing.B, pairs int, d draw) {
	r := rand.New(rand.NewPCG(1, 2))
	stock := make([][2]analysis.Outcome, min(pairs, 2000))
	for i := range stock {
		stock[i][0], stock[i][1] = d(r)
	}
	b.ReportAllocs()
	for b.Loop() {
		a, err := analysis.New(analysis.Claim{Epsilon: 1}, analysis.Options{MaxTrials: pairs})
		if err != nil {
			b.Fatal(err)
		}
		for i := range pairs {
			p := &stock[i%len(stock)]
			a.Add(p[0], p[1])
		}
		a.Report()
	}
	b.ReportMetric(float64(pairs)*float64(b.N)/b.Elapsed().Seconds(), "pairs/s")
}
