package plot_test

import (
	"testing"

	"github.com/dpwatch/dpwatch/internal/plot"
)

// Where the bound falls, the fresh trials of the confirmation begin.
func TestPaths(t *testing.T) {
	t.Parallel()
	type point struct {
		pairs int
		bound float64
	}
	at := func(p point) (int, float64, float64) { return p.pairs, p.bound, p.bound }
	path := []point{{1, 0}, {50, .9}, {100, 2}, {112, 0}, {200, 1.5}}
	lines := plot.Paths(path, at)
	if len(lines) != 2 || len(lines[0].Points) != 3 || len(lines[1].Points) != 2 || lines[1].Points[0].X != 112 {
		t.Errorf("%+v", lines)
	}
	if lines := plot.Paths(path[:3], at); len(lines) != 1 || len(lines[0].Points) != 3 {
		t.Errorf("%+v", lines)
	}
}
