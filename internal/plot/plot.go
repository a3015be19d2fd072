// Package plot turns the figures of an audit into charts: histograms, the paths of wealth and bound, and the privacy
// profile. In: figures of package analysis. Out: charts, or files of SVG. It computes no statistics.
package plot

import (
	"fmt"
	"math"
	"os"
	"path/filepath"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/chart"
	"github.com/dpwatch/dpwatch/internal/read"
)

// Chart is a chart with the name of its file, without the ending.
type Chart struct {
	Name string
	chart.Figure
}

// Write writes the charts of the figures as SVG into a directory, which it creates, and returns the files: histogram,
// categories, wealth, bound and profile. Figures without data are skipped, and those that Draw leaves out. The files show
// results and need the protection of the raw data: only their owner may read them.
func Write(dir string, f analysis.Figures, r analysis.Report) ([]string, error) {
	return write(dir, Draw(f, r, true))
}

// Draw returns the charts of the figures of a report, in the order of Write. Without values, those of answers show no
// value of a result. If the report has no bound, those of bounds are left out.
func Draw(f analysis.Figures, r analysis.Report, values bool) []Chart {
	all := append(Answers(read.NewCharts(&f, values), r.Verdict), Chart{"wealth", wealth(f)})
	if r.HasBound() {
		all = append(all, Chart{"bound", bound(f)}, Chart{"profile", profile(f)})
	}
	return shown(all)
}

// shown returns the charts that show anything.
func shown(all []Chart) (kept []Chart) {
	for _, c := range all {
		if !c.Empty() {
			kept = append(kept, c)
		}
	}
	return kept
}

func write(dir string, all []Chart) (files []string, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("plot: %w", err)
	}
	for _, c := range all {
		path := filepath.Join(dir, c.Name+".svg")
		if err := os.WriteFile(path, c.SVG(), 0o600); err != nil {
			return files, fmt.Errorf("plot: %w", err)
		}
		files = append(files, path)
	}
	return files, nil
}

// Paths returns the first trials of an audit as one line, and the fresh trials that confirm a violation and measure it as
// another one: their evidence and their bound begin again. at returns the pairs of a point, its bound and what is drawn.
func Paths[P any](path []P, at func(P) (pairs int, bound, y float64)) []chart.Line {
	lines := []chart.Line{{Name: "first trials", Class: "a"}}
	before := math.Inf(-1)
	for _, p := range path {
		pairs, bound, y := at(p)
		if bound < before && len(lines) == 1 { // otherwise a bound never falls
			lines = append(lines, chart.Line{Name: "fresh trials, which confirm", Class: "b"})
		}
		before = bound
		last := &lines[len(lines)-1]
		last.Points = append(last.Points, chart.Point{X: float64(pairs), Y: y})
	}
	if len(lines) == 1 {
		lines[0].Name = "trials"
	}
	return lines
}

func wealth(f analysis.Figures) chart.Figure {
	if f.NoClaim {
		return chart.Figure{}
	}
	return chart.Lines(chart.Labels{
		Title: "Evidence against the claim", X: "pairs of trials", Y: "log-wealth (nats)",
		Caption: "The audit reports a violation when it reaches the dashed line; of a right mechanism it rarely does.",
	}, Paths(f.Path, func(p analysis.PathPoint) (int, float64, float64) { return p.Pairs, p.Line, p.Wealth }), []chart.Threshold{{Name: "violation, ln(1/alpha)", Y: f.Threshold}}, true)
}

func bound(f analysis.Figures) chart.Figure {
	var claim []chart.Threshold
	if !f.NoClaim {
		claim = []chart.Threshold{{Name: "claim", Y: f.Claim.Epsilon}}
	}
	return chart.Lines(chart.Labels{
		Title: "Certified lower bound", X: "pairs of trials", Y: "epsilon",
		Caption: "The privacy loss that is certified. Above the dashed line it is more than the query claims.",
	}, Paths(f.Path, func(p analysis.PathPoint) (int, float64, float64) { return p.Pairs, p.Line, p.Line }), claim, true)
}

func profile(f analysis.Figures) chart.Figure {
	return chart.Lines(chart.Labels{
		Title: "Privacy profile: certified at least", X: "epsilon", Y: "delta",
		Caption: "For each epsilon, the delta that is certified at least. Each point holds alone, not all of them together.",
	}, []chart.Line{{Name: "delta is at least", Class: "a", Points: ProfilePoints(f.Profile)}}, nil, false)
}

// ProfilePoints returns the line of a privacy profile. A bound on delta also holds on the left of its point, as delta
// decreases with epsilon.
func ProfilePoints(points []analysis.ProfilePoint) (line []chart.Point) {
	for i, p := range points {
		if i > 0 {
			line = append(line, chart.Point{X: points[i-1].Epsilon, Y: p.Delta})
		}
		line = append(line, chart.Point{X: p.Epsilon, Y: p.Delta})
	}
	return line
}
