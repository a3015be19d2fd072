package pages

import (
	"math"
	"testing"

	"github.com/dpwatch/dpwatch/analysis"
)

// A certified bound is never rounded up.
func TestAtLeast(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		bound, claim float64
		want         string
	}{
		{5.7958, 1, "at least epsilon 5.79"},
		{5.8, 1, "at least epsilon 5.8"},
		{3, 1, "at least epsilon 3"},
		{2.999, 1, "at least epsilon 2.99"},
		{1.0001, 1, "more than epsilon 1"},
		{.5, 1, "at least epsilon 0.5"},
		{.0123456, 1, "at least epsilon 0.0123"},
		{1234.5, 1, "at least epsilon 1.23e+03"},
		{0, 1, "at least epsilon 0"},
		{math.Inf(1), 1, "at least epsilon +Inf"},
	} {
		if got := atLeast(analysis.Float(c.bound), analysis.Float(c.claim)); got != c.want {
			t.Errorf("%v: %q, want %q", c.bound, got, c.want)
		}
	}
}
