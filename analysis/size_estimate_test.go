package analysis_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/dpwatch/dpwatch/analysis"
)

// TestSize: the estimate is within a factor of two of the heap. Not parallel: it measures the heap.
func TestSize(t *testing.T) {
	for _, c := range []struct{ groups, trials int }{{1, 50}, {1, 10_000}, {60, 1000}, {500, 500}} {
		t.Run(fmt.Sprintf("%d groups %d trials", c.groups, c.trials), func(t *testing.T) {
			var a *analysis.Audit
			heap, a := heapAfter(func() *analysis.Audit {
				coin := rand.New(rand.NewPCG(1, 2))
				a, err := analysis.New(analysis.Claim{Epsilon: 1}, analysis.Options{Confidence: .95, MaxTrials: 20_000})
				if err != nil {
					t.Fatal(err)
				}
				for range c.trials {
					var pair [2]analysis.Outcome
					for w := range pair {
						pair[w].Columns = []analysis.Column{{Name: "g", Discrete: true}, {Name: "n"}}
						for g := range c.groups {
							pair[w].Rows = append(pair[w].Rows, []analysis.Value{{Kind: analysis.Text, Text: fmt.Sprint("group ", g)}, {Kind: analysis.Number, Num: coin.NormFloat64()}})
						}
					}
					a.Add(pair[0], pair[1])
				}
				return a
			})
			size := float64(a.Size())
			t.Logf("heap %d, estimate %.0f", heap, size)
			if size < float64(heap)/2 || size > 2*float64(heap)+128<<10 {
				t.Errorf("the estimate is %.0f bytes, the heap holds %d", size, heap)
			}
		})
	}
}
