package replay

import (
	"strings"
	"testing"
	"time"

	"github.com/dpwatch/dpwatch/internal/outcome"
)

// TestNextBatch: batches of quick queries grow, and those of large results shrink, down to one round.
func TestNextBatch(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		n, bytes int
		took     time.Duration
		want     int
	}{
		{25, 1000, time.Millisecond, 50},
		{25, 1000, time.Second, 25},
		{600, 1000, time.Millisecond, 600},
		{25, 4 * maxBatchBytes, time.Second, 6},
		{25, maxBatchBytes, time.Millisecond, 25},
		{2, 100 * maxBatchBytes, time.Second, 1},
	} {
		if got := nextBatch(c.n, c.took, c.bytes); got != c.want {
			t.Errorf("after %d rounds of %d bytes in %s: %d, want %d", c.n, c.bytes, c.took, got, c.want)
		}
	}
	big := outcome.Outcome{Rows: [][]outcome.Value{{{Kind: outcome.Text, Text: strings.Repeat("x", 1000)}}}}
	if n := sizeOf([]Round{{big, big}}); n < 2000 || n > 3000 {
		t.Errorf("two texts of 1000 bytes have size %d", n)
	}
}
