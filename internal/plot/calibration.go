package plot

import (
	"fmt"
	"image/color"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Group is points of one name.
type Group struct {
	Name   string
	Points [][2]float64
}

// Interval is a rate and the interval around it.
type Interval struct {
	Name           string
	Low, Mid, High float64
}

// Points returns an SVG with the groups as points on logarithmic axes and the line on which both coordinates are equal,
// with its name. Points that are not finite and positive are left out; nil = there is none.
func Points(title, x, y, equal string, groups []Group) ([]byte, error) {
	p := newPlot(title, x, y)
	p.Legend.Top, p.Legend.Left = true, true
	lo, hi := math.Inf(1), 0.0
	for i, g := range groups {
		var xys plotter.XYs
		for _, at := range g.Points {
			if at[0] > 0 && at[1] > 0 && !math.IsInf(at[0]+at[1], 0) {
				xys = append(xys, plotter.XY{X: at[0], Y: at[1]})
				lo, hi = min(lo, at[0], at[1]), max(hi, at[0], at[1])
			}
		}
		if len(xys) == 0 {
			continue
		}
		s, err := plotter.NewScatter(xys)
		if err != nil {
			return nil, err
		}
		s.Color, s.Shape, s.Radius = []color.Color{blue, orange, grey}[i%3], []draw.GlyphDrawer{draw.CircleGlyph{}, draw.TriangleGlyph{}, draw.BoxGlyph{}}[i%3], vg.Points(3)
		p.Add(s)
		p.Legend.Add(g.Name, s)
	}
	if hi == 0 {
		return nil, nil
	}
	lo, hi = lo/1.5, hi*1.5
	if err := line(p, equal, grey, plotter.XYs{{X: lo, Y: lo}, {X: hi, Y: hi}}, true); err != nil {
		return nil, err
	}
	p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
	p.X.Tick.Marker, p.Y.Tick.Marker = plot.LogTicks{Prec: -1}, plot.LogTicks{Prec: -1}
	return encode(p, "svg")
}

// Intervals returns an SVG with one line for each rate, and a vertical line at the rate that is allowed.
func Intervals(title, x string, rows []Interval, allowed float64) ([]byte, error) {
	if len(rows) == 0 {
		return nil, nil
	}
	p := newPlot(title, x, "")
	p.Legend.Top, p.X.Min, p.Y.Min, p.Y.Max = true, 0, -.7, float64(len(rows))+.5
	names := make([]string, len(rows))
	for i, r := range rows {
		names[i] = r.Name
		l, err := plotter.NewLine(plotter.XYs{{X: r.Low, Y: float64(i)}, {X: r.High, Y: float64(i)}})
		if err != nil {
			return nil, err
		}
		s, err := plotter.NewScatter(plotter.XYs{{X: r.Mid, Y: float64(i)}})
		if err != nil {
			return nil, err
		}
		l.Color, l.Width, s.Color, s.Shape = blue, vg.Points(1.5), blue, draw.CircleGlyph{}
		p.Add(l, s)
	}
	p.NominalY(names...)
	if err := line(p, fmt.Sprintf("allowed: %.3g", allowed), grey, plotter.XYs{{X: allowed, Y: -.5}, {X: allowed, Y: float64(len(rows)) - .5}}, true); err != nil {
		return nil, err
	}
	return encode(p, "svg")
}
