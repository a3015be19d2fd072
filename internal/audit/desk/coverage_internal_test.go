package desk

import (
	"testing"
)

// TestCoverage: exact for few queries, within five standard errors for many.
func TestCoverage(t *testing.T) {
	t.Parallel()
	var c coverage
	key := func(i int) string {
		h := uint64(i+1) * 0x9E3779B97F4A7C15
		h ^= h >> 29
		h *= 0xBF58476D1CE4E5B9
		h ^= h >> 32
		const digits = "0123456789abcdef"
		var b [16]byte
		for j := range b {
			b[j] = digits[h>>(60-4*j)&15]
		}
		return string(b[:])
	}
	if n, share := c.queries(0); n != 0 || share != nil {
		t.Errorf("without queries %v, %v", n, share)
	}
	for i := range 500 {
		c.see(key(i), i%4 == 0)
		c.see(key(i), i%4 == 0)
	}
	if n, share := c.queries(0); n != 500 || *share != .25 {
		t.Errorf("%v queries, share %v; want 500 and a quarter", n, share)
	}
	c.lose(key(0))
	if _, share := c.queries(0); *share != 124./500 {
		t.Errorf("share %v after one lost its audit", share)
	}
	for i := range 100_000 {
		c.see(key(i), i%4 == 0)
	}
	if n, share := c.queries(0); n < 85_000 || n > 115_000 || *share < .18 || *share > .32 {
		t.Errorf("%v queries, share %v; want about 100,000 and a quarter", n, share)
	}
}
