package read_test

import (
	"testing"

	"github.com/dpwatch/dpwatch/internal/read"
)

// TestResolving: three times the trials that had found a violation resolve it, and more at a higher threshold, but not
// fewer at a lower one.
func TestResolving(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		found       int
		before, now float64
		want        int
	}{{0, 10, 10, 0}, {100, 10, 10, 300}, {100, 10, 20, 600}, {100, 10, 5, 300}, {100, 0, 20, 300}, {7, 3, 4, 28}} {
		s := read.Standing{DetectedAt: tc.found, Threshold: tc.before}
		if got := s.Resolving(tc.now); got != tc.want {
			t.Errorf("%+v: %d", tc, got)
		}
	}
}
