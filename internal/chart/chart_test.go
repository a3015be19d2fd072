package chart_test

import (
	"encoding/xml"
	"errors"
	"html"
	"html/template"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/internal/chart"
)

const hostile = `<script>alert("x")</script>&'`

var labels = chart.Labels{Title: hostile, Caption: hostile, X: hostile, Y: hostile}

// check fails unless a chart is well-formed, has no attribute that a strict content security policy refuses, and no
// coordinate that is not a number.
func check(t *testing.T, name string, drawn template.HTML) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(string(drawn)))
	d.Strict, d.Entity = true, xml.HTMLEntity
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, drawn)
		}
		start, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		if start.Name.Local == "script" || start.Name.Local == "style" {
			t.Errorf("%s: <%s>", name, start.Name.Local)
		}
		for _, a := range start.Attr {
			if a.Name.Local == "style" || strings.HasPrefix(a.Name.Local, "on") {
				t.Errorf("%s: attribute %s", name, a.Name.Local)
			}
			if a.Name.Local != "aria-label" && (strings.Contains(a.Value, "NaN") || strings.Contains(a.Value, "Inf")) {
				t.Errorf("%s: %s=%q", name, a.Name.Local, a.Value)
			}
		}
	}
}

// checkFigure checks a chart in a page and as a file, which has the title, a background and no colour by a variable.
func checkFigure(t *testing.T, name string, f chart.Figure) {
	t.Helper()
	check(t, name, f.HTML())
	if f.Empty() {
		return
	}
	text := string(f.SVG())
	start := strings.Index(text, "<style>")
	end := strings.Index(text, "</style>")
	if start < 0 || strings.Contains(text, "var(") || !strings.Contains(text, `fill="#fff"`) || !strings.Contains(text, html.EscapeString(hostile)+"</text>") {
		t.Fatalf("%s: %s", name, text)
	}
	check(t, name, template.HTML(text[:start]+text[end+len("</style>"):]))
}

// Whatever the numbers and the texts are, charts are sound.
func TestHostile(t *testing.T) {
	t.Parallel()
	odd := []float64{math.NaN(), math.Inf(1), math.Inf(-1), 0, -1, 1, 1e300, -1e300, 1e-300, math.MaxFloat64, -math.MaxFloat64, 5}
	for _, x := range odd {
		for _, y := range odd {
			points := []chart.Point{{X: x, Y: y}, {X: 1, Y: 2}, {X: y, Y: x}, {X: 3, Y: 4}}
			for _, log := range []bool{false, true} {
				checkFigure(t, "lines", chart.Lines(labels, []chart.Line{{Name: hostile, Class: "a", Points: points, Steps: log}}, []chart.Threshold{{Name: hostile, Y: y}, {Name: hostile, Vertical: true, X: y}}, log))
			}
			check(t, "bar", chart.Bar(x, y, max(x, y), hostile))
			check(t, "gauge", chart.Gauge(x, y, hostile, hostile, hostile))
			checkFigure(t, "ranking", chart.Ranking(labels, []chart.Ranked{{Name: hostile, Value: x, Mark: true}, {Value: y}}))
			checkFigure(t, "histogram", chart.Histogram(labels, []float64{0, x, y}, []int{1, 2}, []int{3, 4}, [][2]float64{{x, y}}, hostile))
			check(t, "meter", chart.Meter(x))
			checkFigure(t, "points", chart.Points(labels, hostile, []chart.Group{{Name: hostile, Points: points}, {Points: points}, {Points: points}}))
			checkFigure(t, "intervals", chart.Intervals(labels, []chart.Interval{{Name: hostile, Low: x, Mid: y, High: x}}, y))
		}
	}
	checkFigure(t, "pairs", chart.Pairs(labels, []chart.Pair{{Name: hostile, D0: 1, D1: 0, Event: true}, {Name: strings.Repeat("é", 100), D0: -1, D1: 1 << 40}}, hostile))
}

// Without data there is no chart.
func TestEmpty(t *testing.T) {
	t.Parallel()
	for name, drawn := range map[string]chart.Figure{
		"lines": chart.Lines(labels, nil, nil, true), "one point": chart.Lines(labels, []chart.Line{{Points: []chart.Point{{X: 1, Y: 1}}}}, nil, false),
		"histogram": chart.Histogram(labels, nil, nil, nil, nil, ""), "pairs": chart.Pairs(labels, nil, ""), "ranking": chart.Ranking(labels, nil),
		"points": chart.Points(labels, "", []chart.Group{{Points: []chart.Point{{X: -1, Y: 1}}}}), "intervals": chart.Intervals(labels, nil, .05),
	} {
		if !drawn.Empty() || drawn.HTML() != "" || drawn.SVG() != nil {
			t.Errorf("%s: %s", name, drawn.HTML())
		}
	}
}

// Bars of whole numbers are centred on them, and named by them.
func TestWholeNumbers(t *testing.T) {
	t.Parallel()
	one := string(chart.Histogram(labels, []float64{39.5, 40.5, 41.5}, []int{1, 2}, []int{3, 4}, [][2]float64{{40.5, 41.5}}, "event").HTML())
	three := string(chart.Histogram(labels, []float64{-3.5, -.5, 2.5}, []int{1, 2}, []int{3, 4}, nil, "").HTML())
	other := string(chart.Histogram(labels, []float64{0, .5, 1}, []int{1, 2}, []int{3, 4}, nil, "").HTML())
	for where, wants := range map[string][]string{
		one:   {`<th scope="row">40</th><td>1</td><td>3</td>`, "<title>41: D0 2, D1 4</title>", `text-anchor="middle">40</text>`},
		three: {`<th scope="row">-3 to -1</th>`, `<th scope="row">0 to 2</th>`},
		other: {`<th scope="row">0 to 0.5</th>`},
	} {
		for _, want := range wants {
			if !strings.Contains(where, want) {
				t.Errorf("no %s in\n%s", want, where)
			}
		}
	}
}

// A gauge has both numbers, and marks a bound above the claim.
func TestGauge(t *testing.T) {
	t.Parallel()
	over, under := string(chart.Gauge(1, 3.6, "claim 1", "proven: 3.6", "text")), string(chart.Gauge(1, .5, "claim 1", "proven: 0.5", "text"))
	if !strings.Contains(over, ">claim 1</text>") || !strings.Contains(over, ">proven: 3.6</text>") || !strings.Contains(over, "chart-bar-over") || strings.Contains(under, "chart-bar-over") {
		t.Errorf("%s\n%s", over, under)
	}
	if drawn := chart.Gauge(math.NaN(), math.NaN(), "", "", ""); drawn != "" {
		t.Error(drawn)
	}
}

// The table behind a chart has all values, and a line a mark for each.
func TestTable(t *testing.T) {
	t.Parallel()
	drawn := string(chart.Lines(chart.Labels{Title: "T", X: "pairs", Y: "nats"}, []chart.Line{{Name: "evidence", Class: "a", Points: []chart.Point{{X: 1, Y: -.5}, {X: 10, Y: 2.25}, {X: 100, Y: math.NaN()}}}},
		[]chart.Threshold{{Name: "violation", Y: 3}}, true).HTML())
	for _, want := range []string{`<th scope="col">pairs</th><th scope="col">evidence</th>`, `<th scope="row">10</th><td>2.25</td>`, `<th scope="row">100</th><td>none</td>`, "violation: 3", `data-row="1"`} {
		if !strings.Contains(drawn, want) {
			t.Errorf("no %s in\n%s", want, drawn)
		}
	}
	if n := strings.Count(drawn, "chart-mark"); n != 2 {
		t.Errorf("%d marks, want 2: one for each finite value", n)
	}
	two := string(chart.Lines(chart.Labels{X: "pairs"}, []chart.Line{
		{Name: "first", Class: "a", Points: []chart.Point{{X: 1, Y: 1}, {X: 10, Y: 2}}}, {Name: "fresh", Class: "b", Points: []chart.Point{{X: 10, Y: 0}, {X: 20, Y: 5}}},
	}, nil, true).HTML())
	for _, want := range []string{`<th scope="row">1</th><td>1</td><td></td>`, `<th scope="row">10</th><td>2</td><td>0</td>`, `<th scope="row">20</th><td></td><td>5</td>`} {
		if !strings.Contains(two, want) {
			t.Errorf("no %s in\n%s", want, two)
		}
	}
}
