// Package plot plots the figures of an audit: histograms, the paths of wealth and bound, and the privacy profile, each
// as SVG and PNG. In: figures of package analysis. Out: images or files. It computes no statistics.
package plot

import (
	"bytes"
	"fmt"
	"image/color"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/dpwatch/dpwatch/analysis"
)

var (
	blue   = color.NRGBA{R: 31, G: 119, B: 180, A: 255}
	orange = color.NRGBA{R: 255, G: 127, B: 14, A: 255}
	grey   = color.NRGBA{R: 120, G: 120, B: 120, A: 255}
	shade  = color.NRGBA{R: 255, G: 215, B: 0, A: 90}
)

// Write plots the figures into a directory, which it creates, and returns the files written: histogram, categories,
// wealth, bound and profile, as .svg and .png. Figures without data are skipped. The files show results and need the
// protection of the raw data: only their owner may read them.
func Write(dir string, f analysis.Figures) ([]string, error) {
	return writeAll(dir, f, slices.Concat(ofValues, ofBounds))
}

// The plots of figures: those that show values of results, and the others.
var (
	ofValues = []drawing[analysis.Figures]{{"histogram", histogram}, {"categories", categories}}
	ofBounds = []drawing[analysis.Figures]{{"wealth", wealth}, {"bound", bound}, {"profile", profile}}
)

// Draw returns the plots of the figures, in the order of Write. Without values, those that show values of results are
// left out: histogram and categories.
func Draw(f analysis.Figures, values bool) ([]Image, error) {
	if values {
		return drawAll(f, slices.Concat(ofValues, ofBounds))
	}
	return drawAll(f, ofBounds)
}

// Image is a plot in two formats.
type Image struct {
	Name, Title string
	SVG, PNG    []byte
}

// drawing draws one plot of some figures; nil = there is nothing to draw.
type drawing[F any] struct {
	name string
	draw func(F) (*plot.Plot, error)
}

// writeAll writes each plot in both formats.
func writeAll[F any](dir string, f F, drawings []drawing[F]) ([]string, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("plot: %w", err)
	}
	images, err := drawAll(f, drawings)
	var files []string
	for _, m := range images {
		for i, text := range [][]byte{m.SVG, m.PNG} {
			path := filepath.Join(dir, m.Name+[]string{".svg", ".png"}[i])
			if err := os.WriteFile(path, text, 0o600); err != nil {
				return files, fmt.Errorf("plot: %w", err)
			}
			files = append(files, path)
		}
	}
	return files, err
}

// drawAll draws each plot in both formats.
func drawAll[F any](f F, drawings []drawing[F]) ([]Image, error) {
	var images []Image
	for _, d := range drawings {
		p, err := d.draw(f)
		if err != nil {
			return images, fmt.Errorf("plot %s: %w", d.name, err)
		}
		if p == nil {
			continue
		}
		p.Title.Padding, p.Legend.Padding = vg.Millimeter, vg.Millimeter
		m := Image{Name: d.name, Title: p.Title.Text}
		if m.SVG, err = encode(p, "svg"); err == nil {
			m.PNG, err = encode(p, "png")
		}
		if err != nil {
			return images, fmt.Errorf("plot %s: %w", d.name, err)
		}
		images = append(images, m)
	}
	return images, nil
}

func encode(p *plot.Plot, format string) ([]byte, error) {
	w, err := draw.NewFormattedCanvas(16*vg.Centimeter, 10*vg.Centimeter, format)
	if err != nil {
		return nil, err
	}
	const margin = 3 * vg.Millimeter // half of an axis's last label is outside of the plot
	c := draw.New(w)
	c.FillPolygon(color.White, []vg.Point{c.Min, {X: c.Max.X, Y: c.Min.Y}, c.Max, {X: c.Min.X, Y: c.Max.Y}})
	p.Draw(draw.Crop(c, margin, -2*margin, margin, -margin))
	var b bytes.Buffer
	_, err = w.WriteTo(&b)
	return b.Bytes(), err
}

func newPlot(title, x, y string) *plot.Plot {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, x, y
	return p
}

// event shades a rectangle, given by two opposite corners, where the event is; the first one has an entry in the
// legend.
func event(p *plot.Plot, direction string, first bool, a, b plotter.XY) error {
	box, err := plotter.NewPolygon(plotter.XYs{a, {X: a.X, Y: b.Y}, b, {X: b.X, Y: a.Y}})
	if err != nil {
		return err
	}
	box.Color, box.LineStyle.Width = shade, 0
	p.Add(box)
	if first {
		p.Legend.Add("event, likelier on "+direction, box)
	}
	return nil
}

// line adds a line through the finite points, if there are at least two.
func line(p *plot.Plot, name string, c color.Color, points plotter.XYs, dashed bool) error {
	var finite plotter.XYs
	for _, xy := range points {
		if !math.IsNaN(xy.X+xy.Y) && !math.IsInf(xy.X+xy.Y, 0) {
			finite = append(finite, xy)
		}
	}
	if len(finite) < 2 {
		return nil
	}
	l, err := plotter.NewLine(finite)
	if err != nil {
		return err
	}
	l.Color, l.Width = c, vg.Points(1.5)
	if dashed {
		l.Dashes = []vg.Length{vg.Points(5), vg.Points(4)}
	}
	p.Add(l)
	p.Legend.Add(name, l)
	return nil
}

func histogram(f analysis.Figures) (*plot.Plot, error) {
	h := f.Histogram
	if h == nil {
		return nil, nil
	}
	p := newPlot("Results on D0 and D1", h.Label.Reveal(), "kept trials")
	p.Legend.Top, p.Y.Tick.Marker = true, wholeTicks{}
	most := 1.0
	for i := range h.D0 {
		most = max(most, float64(h.D0[i]), float64(h.D1[i]))
	}
	p.Y.Max = math.Ceil(1.3 * most) // room for the legend
	edges := h.Edges.Reveal()
	for i, e := range joined(h.Event.Reveal()) {
		e = visible(e, edges)
		if err := event(p, h.Direction, i == 0, plotter.XY{X: e[0]}, plotter.XY{X: e[1], Y: most}); err != nil {
			return nil, err
		}
	}
	if err := line(p, "D0", blue, steps(edges, h.D0), false); err != nil {
		return nil, err
	}
	return p, line(p, "D1", orange, steps(edges, h.D1), false)
}

// joined merges intervals that touch.
func joined(intervals [][2]float64) (all [][2]float64) {
	for _, e := range intervals {
		if n := len(all); n > 0 && all[n-1][1] >= e[0] {
			all[n-1][1] = e[1]
		} else {
			all = append(all, e)
		}
	}
	return all
}

// visible widens an interval of a single value to a bin, within the range of the bins.
func visible(e [2]float64, edges []float64) [2]float64 {
	first, last := edges[0], edges[len(edges)-1]
	if missing := (edges[1] - first - (e[1] - e[0])) / 2; missing > 0 {
		e[0], e[1] = max(e[0]-missing, first), min(e[1]+missing, last)
	}
	return e
}

func steps(edges []float64, counts []int) (xys plotter.XYs) {
	for i, n := range counts {
		xys = append(xys, plotter.XY{X: edges[i], Y: float64(n)}, plotter.XY{X: edges[i+1], Y: float64(n)})
	}
	return xys
}

func wealth(f analysis.Figures) (*plot.Plot, error) {
	if f.NoClaim || len(f.Path) < 2 {
		return nil, nil
	}
	p := newPlot("Evidence against the claim", "pairs of trials", "log-wealth (nats)")
	p.Legend.Top, p.Legend.Left, p.X.Tick.Marker = true, true, wholeTicks{}
	var xys plotter.XYs
	for _, x := range f.Path {
		xys = append(xys, plotter.XY{X: float64(x.Pairs), Y: x.Wealth})
	}
	if err := line(p, "wealth", blue, xys, false); err != nil {
		return nil, err
	}
	return p, line(p, "violation: ln(1/alpha)", grey, across(f, f.Threshold), true)
}

func across(f analysis.Figures, y float64) plotter.XYs {
	return plotter.XYs{{X: 0, Y: y}, {X: float64(f.Path[len(f.Path)-1].Pairs), Y: y}}
}

func bound(f analysis.Figures) (*plot.Plot, error) {
	if len(f.Path) < 2 {
		return nil, nil
	}
	p := newPlot("Certified lower bound", "pairs of trials", "epsilon")
	p.Legend.Top, p.Legend.Left, p.Y.Min, p.X.Tick.Marker = true, true, 0, wholeTicks{}
	var xys plotter.XYs
	top := f.Claim.Epsilon
	for _, x := range f.Path {
		xys = append(xys, plotter.XY{X: float64(x.Pairs), Y: x.Line})
		top = max(top, x.Line)
	}
	p.Y.Max = max(.01, 1.3*top) // room for the legend
	if err := line(p, "lower bound", blue, xys, false); err != nil || f.NoClaim {
		return p, err
	}
	return p, line(p, "claim", grey, across(f, f.Claim.Epsilon), true)
}

func profile(f analysis.Figures) (*plot.Plot, error) {
	if len(f.Profile) < 2 {
		return nil, nil
	}
	p := newPlot("Privacy profile: certified at least", "epsilon", "delta")
	p.Legend.Top, p.Y.Min, p.Y.Max = true, 0, max(.01, 1.15*f.Profile[0].Delta)
	var xys plotter.XYs
	for i, x := range f.Profile { // delta decreases with epsilon, so a bound holds on the left of its point
		if i > 0 {
			xys = append(xys, plotter.XY{X: f.Profile[i-1].Epsilon, Y: x.Delta})
		}
		xys = append(xys, plotter.XY{X: x.Epsilon, Y: x.Delta})
	}
	return p, line(p, "lower bound of delta, each point by itself", blue, xys, false)
}

// wholeTicks sets the ticks of an axis of counts: at most seven whole numbers, in steps of 1, 2 or 5 times a power of
// ten.
type wholeTicks struct{}

// Ticks implements [plot.Ticker].
func (wholeTicks) Ticks(lo, hi float64) (ticks []plot.Tick) {
	least := (hi - lo) / 6
	step := math.Pow(10, max(0, math.Floor(math.Log10(least))))
	switch {
	case step >= least:
	case 2*step >= least:
		step *= 2
	case 5*step >= least:
		step *= 5
	default:
		step *= 10
	}
	for i := math.Ceil(lo / step); i*step <= hi; i++ {
		ticks = append(ticks, plot.Tick{Value: i * step, Label: strconv.FormatFloat(i*step, 'f', -1, 64)})
	}
	return ticks
}
