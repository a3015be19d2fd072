package chart

import (
	"fmt"
	"math"
	"slices"
)

// Point is a point of a line.
type Point struct{ X, Y float64 }

// Line is a line of a chart. Class is one of a, b and c.
type Line struct {
	Name   string
	Class  string
	Points []Point
	Steps  bool
}

// Threshold is a horizontal line with its name, or a vertical one at X.
type Threshold struct {
	Name     string
	Y        float64
	Vertical bool
	X        float64
}

// Lines draws lines, whose points ascend in X, over one axis, with thresholds. logX spreads small values. None without
// two finite points.
func Lines(l Labels, lines []Line, thresholds []Threshold, logX bool) Figure {
	d := &drawing{x: scale{math.Inf(1), math.Inf(-1), left, right, logX}, y: scale{0, math.Inf(-1), bottom, top, false}}
	n := 0
	lines = slices.Clone(lines)
	for i := range lines {
		line := &lines[i]
		line.Points = slices.DeleteFunc(slices.Clone(line.Points), func(p Point) bool { return !finite(p.X) })
		for _, p := range line.Points {
			if finite(p.Y) {
				n++
				d.x.lo, d.x.hi = min(d.x.lo, p.X), max(d.x.hi, p.X)
				d.y.lo, d.y.hi = min(d.y.lo, p.Y), max(d.y.hi, p.Y)
			}
		}
	}
	if n < 2 {
		return Figure{}
	}
	for _, t := range thresholds {
		if t.Vertical && finite(t.X) {
			d.x.hi, d.x.lo = max(d.x.hi, t.X), min(d.x.lo, t.X)
		} else if !t.Vertical && finite(t.Y) {
			d.y.hi, d.y.lo = max(d.y.hi, t.Y), min(d.y.lo, t.Y)
		}
	}
	if room := 0.08 * (d.y.hi - d.y.lo); finite(d.y.hi + room) {
		d.y.hi += room
	}
	if !(d.y.hi > d.y.lo) {
		d.y.hi = d.y.lo + 1
	}
	if d.x.log = logX && d.x.hi > 0; d.x.log {
		d.x.lo = max(1, d.x.lo)
		d.x.hi = max(d.x.hi, 2, d.x.lo)
	}
	d.axes(l)
	var keys []key
	for i, t := range thresholds {
		at, line := t.Y, fmt.Sprintf("M%s %sH%s", num(left), num(d.y.at(t.Y)), num(right))
		if t.Vertical {
			at, line = t.X, fmt.Sprintf("M%s %sV%s", num(d.x.at(t.X)), num(bottom), num(top))
		}
		if finite(at) {
			class := "chart-threshold chart-threshold-" + fmt.Sprint(i+1)
			d.tag(`<path class="%s" d="%s"/>`, class, line)
			keys = append(keys, key{class, fmt.Sprintf("%s: %.4g", t.Name, at)})
		}
	}
	for _, line := range lines {
		class := "chart-line chart-" + line.Class
		d.path(class, line.Points, line.Steps)
		keys = append(keys, key{class, line.Name})
	}
	return figure(l, d, keys, lineHeader(l, lines), d.marks(lines))
}

func lineHeader(l Labels, lines []Line) []string {
	header := []string{l.X}
	for _, line := range lines {
		header = append(header, line.Name)
	}
	return header
}

// marks draws the points with their values, and returns the rows of the table: one for each x.
func (d *drawing) marks(lines []Line) (rows [][]string) {
	next := make([]int, len(lines))
	for {
		x := math.Inf(1)
		for i, line := range lines {
			if next[i] < len(line.Points) {
				x = min(x, line.Points[next[i]].X)
			}
		}
		if !finite(x) {
			return rows
		}
		row := []string{short(x)}
		for i, line := range lines {
			cell := ""
			if n := next[i]; n < len(line.Points) && line.Points[n].X == x {
				p := line.Points[n]
				next[i]++
				cell = short(p.Y)
				if finite(p.Y) {
					d.tag(`<circle class="chart-mark chart-%s-fill" cx="%s" cy="%s" r="3" data-row="%d"><title>%s at %s: %s</title></circle>`, line.Class, num(d.x.at(x)), num(d.y.at(p.Y)), len(rows), esc(line.Name), short(x), short(p.Y))
				}
			}
			row = append(row, cell)
		}
		rows = append(rows, row)
	}
}
