package plot

import (
	"slices"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/chart"
	"github.com/dpwatch/dpwatch/internal/read"
)

// Answers draws the answers in both worlds, with what decided shaded: numbers, and those that are no numbers. Without
// values, numbers are in their order alone, and names that may be values are missing.
func Answers(c *read.Charts, verdict analysis.Verdict) []Chart {
	var numbers chart.Figure
	categories := c.Categories
	needed := func(d0, d1 []int) bool { return categories == nil || some(d0) && some(d1) } // otherwise the categories say it all
	switch h, r := c.Histogram, c.Ranks; {
	case h != nil && needed(h.D0, h.D1):
		l := labels(h.Label, verdict, len(h.Event) > 0)
		numbers = chart.Histogram(l, h.Edges, h.D0, h.D1, h.Event, event(h.Direction))
	case r != nil && needed(r.Numbers[:1], r.Numbers[1:]):
		numbers = ranks(r, verdict)
	}
	return shown([]Chart{{"histogram", numbers}, {"categories", pairs(categories)}})
}

func some(counts []int) bool { return slices.ContainsFunc(counts, func(n int) bool { return n > 0 }) }

func event(direction string) string { return "event, likelier on " + direction }

// labels returns the texts of a chart of numbers. ranged is whether the event is a range of them.
func labels(label string, verdict analysis.Verdict, ranged bool) chart.Labels {
	l := chart.Labels{Title: "The answers with and without the person, " + label + ".", X: "answer", Y: "kept trials"}
	switch {
	case verdict != analysis.Violation:
		l.Caption = "Outlines of answers that keep the claim differ, too: by chance, and by as much as the claim allows."
	case ranged:
		l.Caption = "Where the outlines differ, an answer gives the person away."
	default:
		l.Caption = "What gives the person away is not a range of these values."
	}
	return l
}

// ranks draws numbers in their order: of numbers of which one is too frequent for that, only how many are in the event.
func ranks(r *read.Ranks, verdict analysis.Verdict) chart.Figure {
	l := labels(r.Label, verdict, len(r.Event) > 0)
	if len(r.D0) > 0 {
		edges := make([]float64, len(r.D0)+1)
		for i := range edges {
			edges[i] = float64(i) / float64(len(r.D0))
		}
		l.Caption += " The values are withheld: each step is a tenth of the answers of both, in their order."
		l.X, l.Ends = "answers in their order", [2]string{"smallest", "largest"}
		return chart.Histogram(l, edges, r.D0, r.D1, r.Event, event(r.Direction))
	}
	if len(r.Event) == 0 {
		return chart.Figure{}
	}
	l.Caption, l.X = "The values are withheld, but not how many of them are in the event.", "answer"
	in, all := r.Inside, r.Numbers
	return chart.Pairs(l, []chart.Pair{{Name: "number in the event", D0: in[0], D1: in[1], Event: true}, {Name: "another number", D0: all[0] - in[0], D1: all[1] - in[1]}}, event(r.Direction))
}

// pairs draws answers that are no numbers.
func pairs(c *read.Categories) chart.Figure {
	if c == nil {
		return chart.Figure{}
	}
	var all []chart.Pair
	for i := range c.Names {
		all = append(all, chart.Pair{Name: c.Names[i], D0: c.D0[i], D1: c.D1[i], Event: c.Event[i]})
	}
	return chart.Pairs(chart.Labels{Title: "How often each answer was given, " + c.Label + ".", X: "answer", Y: "kept trials"}, all, event(c.Direction))
}
