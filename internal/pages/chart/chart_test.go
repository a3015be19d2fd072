package chart_test

import (
	"encoding/xml"
	"errors"
	"html/template"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/internal/pages/chart"
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

// Whatever the numbers and the texts are, charts are sound.
func TestHostile(t *testing.T) {
	t.Parallel()
	odd := []float64{math.NaN(), math.Inf(1), math.Inf(-1), 0, -1, 1, 1e300, -1e300, 1e-300, math.MaxFloat64, -math.MaxFloat64, 5}
	for _, x := range odd {
		for _, y := range odd {
			points := []chart.Point{{X: x, Y: y}, {X: 1, Y: 2}, {X: y, Y: x}, {X: 3, Y: 4}}
			for _, log := range []bool{false, true} {
				check(t, "lines", chart.Lines(labels, []chart.Line{{Name: hostile, Class: "a", Points: points, Steps: log}}, []chart.Threshold{{Name: hostile, Y: y}}, log))
			}
			check(t, "bar", chart.Bar(x, y, max(x, y)))
			check(t, "strip", chart.Strip(labels, []chart.Cell{{Name: hostile, Value: x, Mark: true}, {Value: y}}))
			check(t, "histogram", chart.Histogram(labels, []float64{0, x, y}, []int{1, 2}, []int{3, 4}, [][2]float64{{x, y}}, hostile))
			check(t, "meter", chart.Meter(x))
		}
	}
	check(t, "pairs", chart.Pairs(labels, []chart.Pair{{Name: hostile, D0: 1, D1: 0, Event: true}, {Name: strings.Repeat("é", 100), D0: -1, D1: 1 << 40}}))
}

// Without data there is no chart.
func TestEmpty(t *testing.T) {
	t.Parallel()
	for name, drawn := range map[string]template.HTML{
		"lines": chart.Lines(labels, nil, nil, true), "one point": chart.Lines(labels, []chart.Line{{Points: []chart.Point{{X: 1, Y: 1}}}}, nil, false),
		"histogram": chart.Histogram(labels, nil, nil, nil, nil, ""), "pairs": chart.Pairs(labels, nil), "strip": chart.Strip(labels, nil),
	} {
		if drawn != "" {
			t.Errorf("%s: %s", name, drawn)
		}
	}
}

// The table behind a chart has all values, and a line a mark for each.
func TestTable(t *testing.T) {
	t.Parallel()
	drawn := string(chart.Lines(chart.Labels{Title: "T", X: "pairs", Y: "nats"}, []chart.Line{{Name: "evidence", Class: "a", Points: []chart.Point{{X: 1, Y: -.5}, {X: 10, Y: 2.25}, {X: 100, Y: math.NaN()}}}},
		[]chart.Threshold{{Name: "violation", Y: 3}}, true))
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
	}, nil, true))
	for _, want := range []string{`<th scope="row">1</th><td>1</td><td></td>`, `<th scope="row">10</th><td>2</td><td>0</td>`, `<th scope="row">20</th><td></td><td>5</td>`} {
		if !strings.Contains(two, want) {
			t.Errorf("no %s in\n%s", want, two)
		}
	}
}
