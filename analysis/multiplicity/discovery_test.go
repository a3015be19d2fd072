package multiplicity_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/dpwatch/dpwatch/analysis/multiplicity"
)

// TestDiscoveryRate: audits that overlap, of which honest ones are reported exactly as often as they may be. The mean
// share of false reports is at most alpha. Without dividing the error rate it is far larger. The seed is fixed.
func TestDiscoveryRate(t *testing.T) {
	t.Parallel()
	const alpha, fleets, audits, overlap = .2, 4000, 200, 5
	rate := func(level func(j, reported int) float64) (fdr float64) {
		r := rand.New(rand.NewPCG(1, 2))
		for range fleets {
			reports, falseReports := 0, 0
			var waiting []float64 // levels of audits that have begun and are not decided; negative for broken queries
			decide := func() {
				level := waiting[0]
				waiting = waiting[1:]
				switch {
				case level < 0:
					reports++
				case r.Float64() < level:
					reports++
					falseReports++
				}
			}
			for j := 1; j <= audits; j++ {
				level := level(j, reports)
				if r.IntN(20) == 0 {
					level = -1
				}
				if waiting = append(waiting, level); len(waiting) > overlap {
					decide()
				}
			}
			for len(waiting) > 0 {
				decide()
			}
			fdr += float64(falseReports) / float64(max(1, reports)) / fleets
		}
		return fdr
	}
	share := rate(func(j, reported int) float64 { return alpha * multiplicity.DiscoveryShare(j, reported) })
	if share > alpha || share == 0 {
		t.Errorf("false discovery rate %g, want at most %g and more than 0", share, alpha)
	}
	if single := rate(func(int, int) float64 { return alpha }); single < 2*alpha {
		t.Errorf("false discovery rate %g at the level of single audits: the fleet is too small to show a wrong level", single)
	}
	if !math.IsNaN(multiplicity.DiscoveryShare(0, 1)) || !math.IsNaN(multiplicity.DiscoveryShare(1, -1)) || multiplicity.DiscoveryShare(7, 0) != multiplicity.Share(7) {
		t.Error("parts that are not defined, or another part than that of the family before the first report")
	}
}
