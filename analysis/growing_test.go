package analysis_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/planted"
)

// TestGrowingFile: the wealth after some pairs does not depend on how many there are in all, so that the analyses of a
// file that grows are looks at one process.
func TestGrowingFile(t *testing.T) {
	t.Parallel()
	draws := map[string]draw{"a value": laplaceShift(1.1), "groups": many(20, oneOf(3, 2)), "words": response(1.1)}
	for _, p := range planted.Places() {
		switch p.Name {
		case "a word of 500", "a digit of 40", "a document of the third column":
			draws[p.Name] = drawWindow(t, p, true)
		}
	}
	const all = 400
	for name, d := range draws {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			audit := func(pairs int) (found int, wealth []float64) {
				a, err := analysis.New(analysis.Claim{Epsilon: 1}, analysis.Options{MaxTrials: pairs})
				if err != nil {
					t.Fatal(err)
				}
				r := rand.New(rand.NewPCG(7, 7))
				for range pairs {
					a.Add(d(r))
					wealth = append(wealth, a.Wealth())
				}
				return a.DetectedAt(), wealth
			}
			found, want := audit(all)
			for _, pairs := range []int{15, 31, 60, 101, 260} {
				at, wealth := audit(pairs)
				for i, w := range wealth {
					if math.Abs(w-want[i]) > 1e-9 { // sums in another order are rounded differently
						t.Errorf("a file of %d pairs: wealth %v after %d, with %d pairs %v", pairs, w, i+1, all, want[i])
						break
					}
				}
				if found > 0 && found <= pairs && at != found {
					t.Errorf("a file of %d pairs: found at %d, with %d pairs at %d", pairs, at, all, found)
				}
			}
		})
	}
}
