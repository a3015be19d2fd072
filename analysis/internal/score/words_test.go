package score

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

// TestIntervalWords: an event in words is true of the values at its ends, also where many answers have one value: that
// is whoever checks the sentence counts first. A number is written so that it is the edge.
func TestIntervalWords(t *testing.T) {
	t.Parallel()
	after := func(x float64) float64 { return math.Nextafter(x, math.Inf(1)) }
	edges := []float64{-1.5, 0, after(0), 41, after(41), 42.5, after(1.23456789012345)}
	for _, c := range []struct {
		from, to int
		want     string
	}{
		{0, 0, "value < -1.5"},
		{0, 1, "value < 0"},
		{0, 2, "value <= 0"},
		{0, 3, "value < 41"},
		{0, 4, "value <= 41"},
		{2, 2, "value = 0"},
		{4, 4, "value = 41"},
		{1, 2, "value from -1.5 to 0"},
		{1, 3, "value from -1.5 to below 41"},
		{3, 3, "value above 0 to below 41"},
		{3, 4, "value above 0 to 41"},
		{5, 7, "value > 41"},
		{4, 7, "value >= 41"},
		{0, 6, "value < 1.23457"},
		{0, 7, "any value"},
	} {
		if got := interval(edges, c.from, c.to, nounOf("value", "values")).Reveal(); got != c.want {
			t.Errorf("bins %d to %d: %q, want %q", c.from, c.to, got, c.want)
		}
	}
	for _, x := range []float64{0, .5, 100, 1e6, -2.25, 0.2978515625} { // an edge beside a value is not that value
		words := interval([]float64{after(x)}, 0, 0, nounOf("value", "values")).Reveal()
		var y float64
		if _, err := fmt.Sscanf(words, "value <= %g", &y); err != nil || y != x || !strings.HasPrefix(words, "value <= ") {
			t.Errorf("%v: %q", x, words)
		}
	}
}
