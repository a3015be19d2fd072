package schedule

import (
	"fmt"
	"image/color"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
)

// shortest is the least wait that a plot shows, in seconds.
const shortest = 0.01

// plot draws which share of the queries had their first trials, and which share of the broken ones was found, by the
// time since a client first ran the query: a solid and a dashed line for each power of ten of the ranks. The form of
// the file follows from its name.
func (f *fleet) plot(path string) error {
	p := plot.New()
	p.Title.Text = fmt.Sprintf("How long does a query wait, by its rank? %d workers, audit.max_trials %d", f.o.workers, f.o.honest)
	p.X.Label.Text, p.Y.Label.Text = "time since a client first ran the query (seconds)", "share of the queries (dashed: of the broken ones)"
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = shortest, f.o.span.Seconds(), 0, 1
	p.Legend.Left, p.Legend.XOffs, p.Legend.YOffs = true, 4*vg.Centimeter, 3.5*vg.Centimeter // between the lines
	p.Legend.TextStyle.Font.Size, p.Legend.ThumbnailWidth = vg.Points(8), vg.Points(12)
	p.Add(plotter.NewGrid())
	colors := []color.Color{color.NRGBA{31, 119, 180, 255}, color.NRGBA{255, 127, 14, 255}, color.NRGBA{44, 160, 44, 255}, color.NRGBA{214, 39, 40, 255}}
	for i, from := 0, 10; i < len(colors) && from < f.o.shapes; i, from = i+1, 10*from {
		to := min(f.o.shapes, 10*from)
		looks, finds := f.waits(from, to)
		for _, l := range []struct {
			name  string
			waits []float64
			dash  []vg.Length
		}{
			{fmt.Sprintf("%d to %d, first trials", from+1, to), looks, nil},
			{fmt.Sprintf("%d to %d, violation", from+1, to), finds, []vg.Length{vg.Points(4), vg.Points(2)}},
		} {
			if len(l.waits) == 0 {
				continue
			}
			line, err := plotter.NewLine(steps(l.waits, f.o.span.Seconds()))
			if err != nil {
				return fmt.Errorf("schedule: plot: %w", err)
			}
			line.Color, line.Dashes, line.StepStyle = colors[i], l.dash, plotter.PostStep
			p.Add(line)
			p.Legend.Add(l.name, line)
		}
	}
	if err := p.Save(20*vg.Centimeter, 11*vg.Centimeter, path); err != nil {
		return fmt.Errorf("schedule: plot: %w", err)
	}
	return nil
}

// steps returns the distribution function of waits at no more than about 200 points, up to the end of the simulation.
func steps(waits []float64, end float64) plotter.XYs {
	slices.Sort(waits)
	points, reached := plotter.XYs{{X: shortest}}, 0.0
	for i := 0; i < len(waits) && !math.IsInf(waits[i], 1); i += max(1, len(waits)/200) {
		reached = float64(i+1) / float64(len(waits))
		points = append(points, plotter.XY{X: max(shortest, waits[i]), Y: reached})
	}
	return append(points, plotter.XY{X: end, Y: reached})
}
