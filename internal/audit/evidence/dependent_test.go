package evidence_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/audit/evidence"
	"github.com/dpwatch/dpwatch/internal/longtest"
)

// TestDependentAnswers: honest engines whose noise depends on the answers before. Each answer keeps a claim of 1 by
// itself, and no more than that can be said of the answers together, so that an audit must not call them violations. Of
// 100 audits of each kind at most 2 did, and 34 to 81 were blocked. At a rate of 5 %, more violations than the test
// allows have a probability of about 1e-6. Seeds are fixed.
func TestDependentAnswers(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	const audits, most, claim = 60, 2000, 1
	lap := func(coin *rand.Rand) float64 { return coin.ExpFloat64() - coin.ExpFloat64() }
	for name, kind := range map[string]func(coin *rand.Rand) func() float64{
		"sticky pool": func(coin *rand.Rand) func() float64 { // each of four connections has its own noise
			pool := [4]float64{lap(coin), lap(coin), lap(coin), lap(coin)}
			return func() float64 { return pool[coin.IntN(4)] }
		},
		"spells": func(coin *rand.Rand) func() float64 { // noise that is drawn again after 20 to 200 answers
			left, x, length := 0, 0.0, 20+coin.IntN(180)
			return func() float64 {
				if left--; left < 0 {
					left, x = length, lap(coin)
				}
				return x
			}
		},
		"slow drift": func(coin *rand.Rand) func() float64 { // four Gaussian walks
			a := math.Exp(-1 / (100 + 900*coin.Float64()))
			var z [4]float64
			for i := range z {
				z[i] = coin.NormFloat64()
			}
			return func() float64 {
				for i := range z {
					z[i] = a*z[i] + math.Sqrt(1-a*a)*coin.NormFloat64()
				}
				return z[0]*z[1] + z[2]*z[3] // has the law of Laplace noise of scale 1
			}
		},
		"repeats at lag 7": func(coin *rand.Rand) func() float64 { // half of the answers repeat the noise of seven before
			var last [7]float64
			n := 0
			return func() float64 {
				if n++; n <= 7 || coin.IntN(2) == 0 {
					last[n%7] = lap(coin)
				}
				return last[n%7]
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			counts := counted(audits, func(seed uint64) (what []string) {
				coin := rand.New(rand.NewPCG(seed, 78))
				w := &worlds{coin: coin, values: [3]float64{d1Copy: 1}, noise: []float64{0, .3, 1}[coin.IntN(3)]}
				for c := range w.state {
					w.state[c] = kind(coin)
				}
				e, err := evidence.New(analysis.Claim{Epsilon: claim}, analysis.Options{MaxTrials: most}, 1)
				if err != nil {
					t.Error(err)
					return nil
				}
				r := w.toEnd(t, e, true).Report(0)
				if what = []string{string(r.Verdict)}; r.Control.Blocks() {
					what = append(what, "blocked")
				}
				return what
			})
			t.Log(name, counts)
			if n := counts["violation"]; n > 14 {
				t.Errorf("%d of %d honest engines are violations", n, audits)
			}
		})
	}
}
