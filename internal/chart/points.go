package chart

import (
	"fmt"
	"math"
	"strings"
)

// Group is points with one name.
type Group struct {
	Name   string
	Points []Point
}

// Points draws groups of points on logarithmic axes, and the line on which both coordinates are equal, with its name.
// Points that are not finite and positive are left out. None without points.
func Points(l Labels, equal string, groups []Group) Figure {
	shown := func(p Point) bool { return finite(p.X, p.Y) && p.X > 0 && p.Y > 0 }
	lo, hi := math.Inf(1), 0.0
	for _, g := range groups {
		for _, p := range g.Points {
			if shown(p) {
				lo, hi = min(lo, p.X, p.Y), max(hi, p.X, p.Y)
			}
		}
	}
	if hi == 0 {
		return Figure{}
	}
	lo, hi = max(lo/1.5, math.SmallestNonzeroFloat64), min(hi*1.5, math.MaxFloat64)
	d := &drawing{x: scale{lo, hi, left, right, true}, y: scale{lo, hi, bottom, top, true}}
	d.axes(l)
	d.tag(`<path class="chart-threshold chart-threshold-1" d="M%s %sL%s %s"/>`, num(left), num(bottom), num(right), num(top))
	keys := []key{{"chart-threshold chart-threshold-1", equal}}
	var rows [][]string
	for i, g := range groups {
		class := []string{"chart-a-fill", "chart-b-fill", "chart-c-fill"}[i%3]
		n := len(rows)
		for _, p := range g.Points {
			if !shown(p) {
				continue
			}
			d.mark(i, class, p, fmt.Sprintf("%s: %s, %s", g.Name, short(p.X), short(p.Y)), len(rows))
			rows = append(rows, []string{short(p.X), short(p.Y), g.Name})
		}
		if len(rows) > n {
			keys = append(keys, key{class, g.Name})
		}
	}
	return figure(l, d, keys, []string{l.X, l.Y, "group"}, rows)
}

// mark draws a point: a circle, a square or a triangle, by the number of its group.
func (d *drawing) mark(group int, class string, p Point, text string, row int) {
	x, y := d.x.at(p.X), d.y.at(p.Y)
	shape := fmt.Sprintf(`circle class="%s" cx="%s" cy="%s" r="4"`, class, num(x), num(y))
	end := "circle"
	switch group % 3 {
	case 1:
		shape, end = fmt.Sprintf(`rect class="%s" x="%s" y="%s" width="7" height="7"`, class, num(x-3.5), num(y-3.5)), "rect"
	case 2:
		shape, end = fmt.Sprintf(`path class="%s" d="M%s %sh9l-4.5 -8z"`, class, num(x-4.5), num(y+4)), "path"
	}
	d.tag(`<%s data-row="%d"><title>%s</title></%s>`, shape, row, esc(text), end)
}

// Interval is a rate and the interval around it.
type Interval struct {
	Name           string
	Low, Mid, High float64
}

// Intervals draws a line for each rate and its interval, and a vertical line at the rate that is allowed. None without
// rates.
func Intervals(l Labels, rows []Interval, allowed float64) Figure {
	if len(rows) == 0 {
		return Figure{}
	}
	const row, names = 22.0, 220.0
	most := 0.0
	for _, v := range append([]float64{allowed}, highest(rows)...) {
		if finite(v) {
			most = max(most, v)
		}
	}
	s := scale{0, most, names, right, false}
	var b strings.Builder
	end := row * float64(len(rows))
	for _, v := range s.ticks() {
		fmt.Fprintf(&b, `<line class="chart-grid" x1="%s" x2="%s" y1="0" y2="%s"/><text class="chart-tick" x="%s" y="%s" text-anchor="middle">%s</text>`+"\n",
			num(s.at(v)), num(s.at(v)), num(end), num(s.at(v)), num(end+16), short(v))
	}
	var table [][]string
	for i, r := range rows {
		y := row*float64(i) + row/2
		fmt.Fprintf(&b, `<text class="chart-tick" x="6" y="%s">%s</text>`+"\n", num(y+4), esc(brief(r.Name, 30)))
		table = append(table, []string{r.Name, short(r.Mid), short(r.Low), short(r.High)})
		if !finite(r.Low, r.Mid, r.High) {
			continue
		}
		fmt.Fprintf(&b, `<path class="chart-line chart-a" d="M%s %sH%s"/><circle class="chart-a-fill" cx="%s" cy="%s" r="4" data-row="%d"><title>%s: %s (%s to %s)</title></circle>`+"\n",
			num(s.at(r.Low)), num(y), num(s.at(r.High)), num(s.at(r.Mid)), num(y), i, esc(r.Name), short(r.Mid), short(r.Low), short(r.High))
	}
	var keys []key
	if finite(allowed) {
		fmt.Fprintf(&b, `<path class="chart-threshold chart-threshold-1" d="M%s 0V%s"/>`+"\n", num(s.at(allowed)), num(end))
		keys = []key{{"chart-threshold chart-threshold-1", "allowed: " + short(allowed)}}
	}
	fmt.Fprintf(&b, `<text class="chart-name" x="%s" y="%s" text-anchor="middle">%s</text>`+"\n", num((names+right)/2), num(end+36), esc(l.X))
	return Figure{l, width, end + 44, b.String(), keys, []string{"name", l.X, "from", "to"}, table}
}

func highest(rows []Interval) (all []float64) {
	for _, r := range rows {
		all = append(all, r.High)
	}
	return all
}

// brief truncates a name to a number of characters.
func brief(name string, most int) string {
	if r := []rune(name); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return name
}
