package plot_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/analysis/buckets"
	"github.com/dpwatch/dpwatch/internal/plot"
	"github.com/dpwatch/dpwatch/internal/withheld"
)

func TestWriteBuckets(t *testing.T) {
	t.Parallel()
	for _, n := range []int{2, 100} {
		r := buckets.Report{Claim: analysis.Claim{Epsilon: 1}, Direction: "D0", Errors: []buckets.Error{{FalsePositive: 0, FalseNegative: 1}, {FalsePositive: .2, FalseNegative: .3}, {FalsePositive: 1, FalseNegative: 0}}}
		for i := range n {
			r.Buckets = append(r.Buckets, buckets.Bucket{Name: withheld.New(fmt.Sprintf("at %d", i), "a bucket"), D0: n - i, D1: i + 1, InEvent: i == 0})
		}
		dir := filepath.Join(t.TempDir(), "plots")
		files, err := plot.WriteBuckets(dir, r)
		if err != nil || len(files) != 2 {
			t.Fatal(files, err)
		}
		bars, err := os.ReadFile(filepath.Join(dir, "buckets.svg"))
		if err != nil {
			t.Fatal(err)
		}
		if drawn := len(regexp.MustCompile(`>at \d+</text>`).FindAllIndex(bars, -1)); drawn != min(n, 29) || strings.Contains(string(bars), "71 more buckets") != (n == 100) || !strings.Contains(string(bars), "event, likelier on D0") {
			t.Errorf("%d of %d buckets are drawn", drawn, n)
		}
		errors, err := os.ReadFile(filepath.Join(dir, "errors.svg"))
		if err != nil || !strings.Contains(string(errors), "allowed by the claim") || !strings.Contains(string(errors), "false negatives") {
			t.Errorf("errors.svg: %v", err)
		}
	}
}
