package plot

import (
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"

	"github.com/dpwatch/dpwatch/analysis"
)

// categories plots a pair of horizontal bars per category, the most frequent on top.
func categories(f analysis.Figures) (*plot.Plot, error) {
	c := f.Categories
	if c == nil {
		return nil, nil
	}
	p := newPlot("Results on D0 and D1", "kept trials", c.Label.Reveal())
	p.Legend.Top, p.X.Tick.Marker, p.X.Min = true, wholeTicks{}, 0
	n := len(c.Names)
	names := make([]string, n)
	most := 1.0
	for i, name := range c.Names { // from the bottom
		names[n-1-i] = brief(name.Reveal())
		most = max(most, float64(c.D0[i]), float64(c.D1[i]))
	}
	p.NominalY(names...)
	p.Y.Min, p.Y.Max, p.X.Max = -.6, float64(n)-.4, math.Ceil(1.65*most) // room for the legend
	first := slices.Index(c.Event, true)
	for i, inEvent := range c.Event {
		if !inEvent {
			continue
		}
		y := float64(n - 1 - i)
		if err := event(p, c.Direction, i == first, plotter.XY{Y: y - .5}, plotter.XY{X: most, Y: y + .5}); err != nil {
			return nil, err
		}
	}
	thick := min(12*vg.Millimeter, 28*vg.Millimeter/vg.Length(n)) // the axis is about 75 mm long
	for w, counts := range [2][]int{c.D0, c.D1} {
		values := make(plotter.Values, n)
		for i, k := range counts {
			values[n-1-i] = float64(k)
		}
		bars, err := plotter.NewBarChart(values, thick)
		if err != nil {
			return nil, err
		}
		bars.Horizontal, bars.LineStyle.Width = true, 0
		bars.Color, bars.Offset = blue, thick/2
		if w == 1 {
			bars.Color, bars.Offset = orange, -thick/2
		}
		p.Add(bars)
		p.Legend.Add("D"+strconv.Itoa(w), bars)
	}
	return p, nil
}

// brief truncates a name to the space beside the axis.
func brief(name string) string {
	const most = 24
	if runes := []rune(name); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return name
}
