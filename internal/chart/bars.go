package chart

import (
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"
)

// Histogram draws the counts of two worlds in bins of equal width as outlines, with the intervals of an event shaded.
// edges has one more value than the counts. If the ends of the axis have names, the figure has no edge. None without bins.
func Histogram(l Labels, edges []float64, d0, d1 []int, event [][2]float64, eventName string) Figure {
	n := min(len(d0), len(d1), len(edges)-1)
	if n < 1 || !finite(edges...) {
		return Figure{}
	}
	d := &drawing{x: scale{edges[0], edges[n], left, right, false}, y: scale{0, 1, bottom, top, false}}
	for i := range n {
		d.y.hi = max(d.y.hi, float64(d0[i]), float64(d1[i]))
	}
	d.y.hi *= 1.05
	keys := []key{{"chart-line chart-a", "D0, with the person"}, {"chart-line chart-b", "D1, without the person"}}
	for _, e := range event {
		if from, to := d.x.at(e[0]), d.x.at(e[1]); finite(e[0], e[1]) && to >= from {
			title := eventName
			if l.Ends == [2]string{} {
				title += ": from " + short(e[0]) + " to " + short(e[1])
			}
			d.tag(`<rect class="chart-event-fill" x="%s" y="%s" width="%s" height="%s"><title>%s</title></rect>`, num(from), num(top), num(max(2, to-from)), num(bottom-top), esc(title))
		}
	}
	if len(event) > 0 {
		keys = append(keys, key{"chart-event-fill", eventName})
	}
	d.axes(l)
	var rows [][]string
	for i := range n {
		name := binName(edges[i], edges[i+1])
		if l.Ends != [2]string{} {
			name = fmt.Sprintf("%d of %d", i+1, n)
		}
		rows = append(rows, []string{name, fmt.Sprint(d0[i]), fmt.Sprint(d1[i])})
		x, to := d.x.at(edges[i]), d.x.at(edges[i+1])
		d.tag(`<rect class="chart-hit" x="%s" y="%s" width="%s" height="%s" data-row="%d"><title>%s: D0 %d, D1 %d</title></rect>`,
			num(x), num(top), num(to-x), num(bottom-top), i, name, d0[i], d1[i])
	}
	d.path("chart-line chart-a", outline(edges, d0[:n]), false)
	d.path("chart-line chart-b", outline(edges, d1[:n]), false)
	return figure(l, d, keys, []string{l.X, "D0", "D1"}, rows)
}

// binName names a bin: one between two halves, of whole numbers, by the first and the last of these.
func binName(from, to float64) string {
	half := func(x float64) bool { return x-math.Floor(x) == .5 }
	switch {
	case half(from) && to == from+1:
		return short(from + .5)
	case half(from) && half(to):
		return short(from+.5) + " to " + short(to-.5)
	}
	return short(from) + " to " + short(to)
}

// outline returns the outline of bars.
func outline(edges []float64, counts []int) []Point {
	points := []Point{{edges[0], 0}}
	for i, n := range counts {
		points = append(points, Point{edges[i], float64(n)}, Point{edges[i+1], float64(n)})
	}
	return append(points, Point{edges[len(counts)], 0})
}

// Pair is a name with its counts in both worlds.
type Pair struct {
	Name   string
	D0, D1 int
	Event  bool
}

// Pairs draws two bars for each name, and shades those of an event. None without names.
func Pairs(l Labels, pairs []Pair, eventName string) Figure {
	if len(pairs) == 0 {
		return Figure{}
	}
	most := 1
	for _, p := range pairs {
		most = max(most, p.D0, p.D1)
	}
	var b strings.Builder
	const row, bar = 34.0, 11.0
	var rows [][]string
	for i, p := range pairs {
		y := row*float64(i) + 4
		mark := "no"
		if p.Event {
			fmt.Fprintf(&b, `<rect class="chart-event-fill" x="0" y="%s" width="%s" height="%s"/>`+"\n", num(y-2), num(width), num(row-3))
			mark = "yes"
		}
		fmt.Fprintf(&b, `<text class="chart-tick" x="6" y="%s">%s</text>`+"\n", num(y+bar+5), esc(brief(p.Name, 22)))
		for k, n := range []int{p.D0, p.D1} {
			at, length := y+float64(k)*(bar+2), 230*float64(n)/float64(most)
			fmt.Fprintf(&b, `<rect class="chart-%s-fill" x="180" y="%s" width="%s" height="%s"><title>%s: %d</title></rect>`+"\n", []string{"a", "b"}[k], num(at), num(max(1, length)), num(bar), esc(p.Name), n)
			fmt.Fprintf(&b, `<text class="chart-tick" x="%s" y="%s">%d</text>`+"\n", num(186+length), num(at+bar-1), n)
		}
		rows = append(rows, []string{p.Name, fmt.Sprint(p.D0), fmt.Sprint(p.D1), mark})
	}
	end := row*float64(len(pairs)) + 18
	fmt.Fprintf(&b, `<text class="chart-name" x="6" y="%s">%s</text><text class="chart-name" x="%s" y="%s" text-anchor="middle">%s</text>`+"\n", num(end), esc(l.X), num((180+right)/2), num(end), esc(l.Y))
	keys := []key{{"chart-a-fill", "D0, with the person"}, {"chart-b-fill", "D1, without the person"}}
	if slices.ContainsFunc(pairs, func(p Pair) bool { return p.Event }) {
		keys = append(keys, key{"chart-event-fill", eventName})
	}
	return Figure{l, width, end + 6, b.String(), keys, []string{l.X, "D0", "D1", "event"}, rows}
}

// Ranked is a name with a value.
type Ranked struct {
	Name  string
	Value float64 // NaN = not known; if it is marked as well, its bar is the longest
	Mark  bool    // exceeds what is allowed
}

// mostRanked is the greatest number of bars of Ranking; its table has all values.
const mostRanked = 12

// Ranking draws a bar for each value, in the order given, under which its name can be read. None without values.
func Ranking(l Labels, all []Ranked) Figure {
	if len(all) == 0 {
		return Figure{}
	}
	most := 0.0
	for _, r := range all {
		if finite(r.Value) {
			most = max(most, r.Value)
		}
	}
	var b strings.Builder
	const row, bar, from, longest = 21.0, 13.0, 180.0, 240.0
	var rows [][]string
	for i, r := range all {
		mark, class := "no", "chart-a-fill"
		if r.Mark {
			mark, class = "yes", "chart-bar-over"
		}
		rows = append(rows, []string{r.Name, short(r.Value), mark})
		if i >= mostRanked {
			continue
		}
		y, length, value := row*float64(i)+4, 0.0, short(r.Value)
		switch {
		case r.Mark && math.IsNaN(r.Value):
			length, value = longest, ""
		case math.IsInf(r.Value, 1):
			length = longest
		case finite(r.Value) && most > 0:
			length = longest * (max(0, r.Value) / most)
		}
		fmt.Fprintf(&b, `<text class="chart-tick" x="6" y="%s">%s</text>`+"\n", num(y+bar-2), esc(brief(r.Name, 26)))
		fmt.Fprintf(&b, `<rect class="%s" x="%s" y="%s" width="%s" height="%s" data-row="%d"><title>%s: %s</title></rect>`+"\n",
			class, num(from), num(y), num(max(1, length)), num(bar), i, esc(r.Name), short(r.Value))
		fmt.Fprintf(&b, `<text class="chart-tick" x="%s" y="%s">%s</text>`+"\n", num(from+6+length), num(y+bar-2), value)
	}
	end := row*float64(min(len(all), mostRanked)) + 18
	below := l.X
	if more := len(all) - mostRanked; more > 0 {
		below = fmt.Sprintf("%s; %d more are in the table", l.X, more)
	}
	fmt.Fprintf(&b, `<text class="chart-name" x="6" y="%s">%s</text><text class="chart-name" x="%s" y="%s" text-anchor="middle">%s</text>`+"\n", num(end), esc(below), num((from+right)/2), num(end), esc(l.Y))
	return Figure{l, width, end + 6, b.String(), []key{{"chart-a-fill", "within the claim"}, {"chart-bar-over", "exceeds the claim"}}, []string{l.X, l.Y, "exceeds the claim"}, rows}
}

// Bar draws a claim and a lower bound on a scale from 0 to most, for the cell of a table; text says both. Values that are
// not finite are left out.
func Bar(claim, bound, most float64, text string) template.HTML {
	const wide = 120.0
	s := scale{0, most, 1, wide - 1, false}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="chart-bar" viewBox="0 0 %s 14" width="%s" height="14" role="img" aria-label="%s"><title>%s</title><rect class="chart-bar-back" y="4" width="%s" height="6"/>`, num(wide), num(wide), esc(text), esc(text), num(wide))
	if finite(most) && most > 0 {
		if b0 := min(bound, most); !math.IsNaN(b0) && b0 > 0 {
			class := "chart-bar-bound"
			if finite(claim) && bound > claim {
				class += " chart-bar-over"
			}
			fmt.Fprintf(&b, `<rect class="%s" y="4" width="%s" height="6"/>`, class, num(s.at(b0)))
		}
		if finite(claim) {
			fmt.Fprintf(&b, `<rect class="chart-bar-claim" x="%s" y="0" width="2" height="14"/>`, num(s.at(claim)-1))
		}
	}
	b.WriteString("</svg>")
	return template.HTML(b.String()) // #nosec G203 -- numbers, and a text that is escaped
}

// Gauge draws a claim and a lower bound on a scale from 0 on, both with their numbers; text says both. Values that are
// not finite are left out. "" without a finite one.
func Gauge(claim, bound float64, claimed, proven, text string) template.HTML {
	const wide, bar, thick = 300.0, 20.0, 12.0
	most := 0.0
	for _, v := range []float64{claim, bound} {
		if finite(v) {
			most = max(most, v)
		}
	}
	if !(most > 0) || !finite(1.25*most) {
		return ""
	}
	s := scale{0, 1.25 * most, 1, wide - 1, false}
	var b strings.Builder
	label := func(at, y float64, text string) {
		anchor := "middle"
		switch {
		case at < 70:
			at, anchor = max(1, at-10), "start"
		case at > wide-70:
			at, anchor = wide-1, "end"
		}
		fmt.Fprintf(&b, `<text class="chart-tick" x="%s" y="%s" text-anchor="%s">%s</text>`, num(at), num(y), anchor, esc(text))
	}
	fmt.Fprintf(&b, `<svg class="chart-gauge" viewBox="0 0 %s 50" role="img" aria-label="%s"><title>%s</title><rect class="chart-bar-back" y="%s" width="%s" height="%s"/>`, num(wide), esc(text), esc(text), num(bar), num(wide), num(thick))
	if finite(bound) && bound >= 0 {
		class := "chart-bar-bound"
		if finite(claim) && bound > claim {
			class += " chart-bar-over"
		}
		fmt.Fprintf(&b, `<rect class="%s" y="%s" width="%s" height="%s"/>`, class, num(bar), num(s.at(bound)-1), num(thick))
		label(s.at(bound), bar+thick+15, proven)
	}
	if finite(claim) && claim >= 0 {
		fmt.Fprintf(&b, `<rect class="chart-bar-claim" x="%s" y="%s" width="3" height="%s"/>`, num(s.at(claim)-1), num(bar-4), num(thick+8))
		label(s.at(claim), bar-8, claimed)
	}
	b.WriteString("</svg>")
	return template.HTML(b.String()) // #nosec G203 -- numbers, and texts that are escaped
}

// Meter draws a share of a whole; more than the whole is marked.
func Meter(share float64) template.HTML {
	if !finite(share) {
		return ""
	}
	class := "chart-bar-bound"
	if share > 1 {
		class += " chart-bar-over"
	}
	return template.HTML(fmt.Sprintf(`<svg class="chart-bar" viewBox="0 0 120 14" width="120" height="14" aria-hidden="true"><rect class="chart-bar-back" y="4" width="120" height="6"/><rect class="%s" y="4" width="%s" height="6"/></svg>`,
		class, num(120*min(1, max(0, share))))) // #nosec G203 -- numbers alone
}
