// Package chart draws charts as SVG, for HTML pages and as files.
//
// In: numbers and texts. Out: a figure with a title, the drawing, a legend, and a table of the values behind it. Texts
// are escaped. In a page, colours and dashes come from classes of the style sheet, so that a strict content security
// policy and both colour schemes work. Values that are no finite numbers are left out of drawings.
package chart

import (
	"fmt"
	"html"
	"math"
	"strconv"
	"strings"
)

// Labels are the texts of a chart.
type Labels struct {
	Title   string // a sentence: what the chart shows
	Caption string // how to read it; "" = nothing
	X, Y    string // axes, with units
	// Ends are the names of both ends of the horizontal axis in place of its values; "" = its values.
	Ends [2]string
}

// The size of a drawing, which the page scales.
const (
	width, height = 480.0, 270.0
	left, right   = 52.0, 468.0
	top, bottom   = 12.0, 226.0
)

// scale maps values to positions.
type scale struct {
	lo, hi   float64 // values
	from, to float64 // positions
	log      bool
}

func (s scale) at(v float64) float64 {
	lo, hi := s.lo, s.hi
	if s.log {
		v, lo, hi = math.Log10(max(v, s.lo)), math.Log10(s.lo), math.Log10(s.hi)
	}
	if !(hi > lo) {
		return (s.from + s.to) / 2
	}
	share := (v/2 - lo/2) / (hi/2 - lo/2) // halves do not overflow
	return s.from + min(1, max(0, share))*(s.to-s.from)
}

// ticks returns at most about six round values in the range.
func (s scale) ticks() (all []float64) {
	if s.log {
		for p := math.Pow(10, math.Ceil(math.Log10(s.lo)-1e-9)); p <= s.hi && !math.IsInf(p, 0); p *= 10 {
			all = append(all, p)
		}
		for len(all) > 12 { // every second one
			for i := range all[:len(all)/2] {
				all[i] = all[2*i]
			}
			all = all[:len(all)/2]
		}
		if len(all) > 1 {
			return all
		}
	}
	span := s.hi - s.lo
	if !(span > 0) || math.IsInf(span, 0) {
		return []float64{s.lo}
	}
	step := math.Pow(10, math.Floor(math.Log10(span/5)))
	for _, m := range []float64{1, 2, 5, 10} {
		if span/(m*step) <= 6 {
			step *= m
			break
		}
	}
	for i, n := math.Ceil(s.lo/step-1e-9), 0; i*step <= s.hi+step*1e-9 && n < 20; i, n = i+1, n+1 {
		all = append(all, i*step)
	}
	return all
}

// drawing is an SVG that is being written.
type drawing struct {
	strings.Builder
	x, y scale
}

func (d *drawing) tag(format string, args ...any) { fmt.Fprintf(d, format+"\n", args...) }

// axes draws both axes with ticks and names.
func (d *drawing) axes(l Labels) {
	for _, v := range d.y.ticks() {
		y := d.y.at(v)
		d.tag(`<line class="chart-grid" x1="%s" x2="%s" y1="%s" y2="%s"/>`, num(left), num(right), num(y), num(y))
		d.tag(`<text class="chart-tick" x="%s" y="%s" text-anchor="end">%s</text>`, num(left-6), num(y+4), short(v))
	}
	if l.Ends == [2]string{} {
		for _, v := range d.x.ticks() {
			d.tag(`<text class="chart-tick" x="%s" y="%s" text-anchor="middle">%s</text>`, num(d.x.at(v)), num(bottom+16), short(v))
		}
	} else {
		d.tag(`<text class="chart-tick" x="%s" y="%s">%s</text>`, num(left), num(bottom+16), esc(l.Ends[0]))
		d.tag(`<text class="chart-tick" x="%s" y="%s" text-anchor="end">%s</text>`, num(right), num(bottom+16), esc(l.Ends[1]))
	}
	d.tag(`<line class="chart-axis" x1="%s" x2="%s" y1="%s" y2="%s"/>`, num(left), num(right), num(bottom), num(bottom))
	d.tag(`<text class="chart-name" x="%s" y="%s" text-anchor="middle">%s</text>`, num((left+right)/2), num(height-10), esc(l.X))
	d.tag(`<text class="chart-name" x="12" y="%s" text-anchor="middle" transform="rotate(-90 12 %s)">%s</text>`, num((top+bottom)/2), num((top+bottom)/2), esc(l.Y))
}

// path draws a line through the finite points; steps draws a staircase.
func (d *drawing) path(class string, points []Point, steps bool) {
	var b strings.Builder
	down, last := false, 0.0
	for _, p := range points {
		if !finite(p.X, p.Y) {
			down = false
			continue
		}
		x, y := d.x.at(p.X), d.y.at(p.Y)
		switch {
		case !down:
			fmt.Fprintf(&b, "M%s %s", num(x), num(y))
		case steps:
			fmt.Fprintf(&b, "L%s %sL%s %s", num(x), num(last), num(x), num(y))
		default:
			fmt.Fprintf(&b, "L%s %s", num(x), num(y))
		}
		down, last = true, y
	}
	d.tag(`<path class="%s" d="%s"/>`, class, b.String())
}

func esc(text string) string { return html.EscapeString(text) }

// num formats a position.
func num(v float64) string { return strconv.FormatFloat(math.Round(v*10)/10+0, 'f', -1, 64) }

// short formats a value for an axis or a table.
func short(v float64) string {
	switch {
	case math.IsNaN(v):
		return "none"
	case math.IsInf(v, 0):
		return strings.Replace(strings.Replace(fmt.Sprint(v), "+Inf", "∞", 1), "-Inf", "−∞", 1)
	case v != 0 && (math.Abs(v) >= 1e6 || math.Abs(v) < 1e-3):
		return strings.Replace(strconv.FormatFloat(v, 'g', 3, 64), "e+0", "e", 1)
	}
	return strconv.FormatFloat(math.Round(v*1e4)/1e4+0, 'f', -1, 64) // + 0 makes -0 a 0
}

func finite(all ...float64) bool {
	for _, v := range all {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return false
		}
	}
	return true
}
