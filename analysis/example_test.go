package analysis_test

import (
	"fmt"
	"math/rand/v2"

	"github.com/dpwatch/dpwatch/analysis"
)

// An engine claims epsilon 1 for a count and adds half the noise that it should.
func ExampleAudit() {
	audit, err := analysis.New(analysis.Claim{Epsilon: 1}, analysis.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	noise := rand.New(rand.NewPCG(1, 2))
	noisyCount := func(truth float64) analysis.Outcome {
		return analysis.Outcome{
			Columns: []analysis.Column{{Name: "count"}},
			Rows:    [][]analysis.Value{{{Kind: analysis.Number, Num: truth + lap(noise, .5)}}},
		}
	}
	for !audit.Decided() {
		audit.Add(noisyCount(500), noisyCount(499))
	}
	report := audit.Report()
	fmt.Println(report.Verdict, report.EpsilonLower > 1, report.Trials.D0 < 300)
	// Output: violation true true
}

func ExampleBucketEstimate() {
	// Randomised response that keeps the truth with probability e/(1+e).
	fmt.Printf("%.3f\n", analysis.BucketEstimate([]int{7311, 2689}, []int{2689, 7311}, 0, 5))
	// Output: 1.000
}
