package pages

import (
	"cmp"
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/chart"
	"github.com/dpwatch/dpwatch/internal/plot"
	"github.com/dpwatch/dpwatch/internal/read"
)

// evidenceCharts draws how the evidence and the bound grew.
func evidenceCharts(d *read.Details) []template.HTML {
	if d.Charts == nil {
		return nil
	}
	figures := []chart.Figure{wealthChart(d)}
	if d.Audit.Result().HasBound() {
		figures = append(figures, boundChart(d.Charts))
	}
	return drawn(figures)
}

// answerCharts draws the answers in both worlds, with what decided shaded.
func answerCharts(d *read.Details) (all []template.HTML) {
	if d.Charts == nil {
		return nil
	}
	for _, c := range plot.Answers(d.Charts, d.Audit.Result().Verdict) {
		all = append(all, c.HTML())
	}
	return all
}

// drawn returns the figures that show anything.
func drawn(figures []chart.Figure) (all []template.HTML) {
	for _, f := range figures {
		if !f.Empty() {
			all = append(all, f.HTML())
		}
	}
	return all
}

// steep is how far above its threshold evidence is drawn; the caption says so.
const steep = 6

// wealthChart draws the evidence over the trials.
func wealthChart(d *read.Details) chart.Figure {
	c := d.Charts
	if c.NoClaim {
		return chart.Figure{}
	}
	lines := plot.Paths(c.Path, func(p read.PathPoint) (int, float64, float64) { return p.Pairs, float64(p.Bound), float64(p.Wealth) })
	crossed, caption := 0, ""
	for i := range lines {
		all := lines[i].Points
		for k, p := range all {
			all[k].Y = math.Round(p.Y*1e6) / 1e6 // sums of floats are not exactly 0
			if crossed == 0 && p.Y >= c.Fleet {
				crossed = int(p.X)
			}
			if p.Y > steep*c.Fleet && k+1 < len(all) { // the rest would flatten what comes before it
				caption = fmt.Sprintf(" It is drawn up to six times the threshold; it went on to %.4g after %.0f pairs.", all[len(all)-1].Y, all[len(all)-1].X)
				lines[i].Points = all[:k+1]
				break
			}
		}
	}
	title := "The evidence against the claim has not reached the threshold."
	if crossed > 0 {
		title = fmt.Sprintf("The evidence against the claim crossed the threshold within %s.", plural(crossed, "pair of trials", "pairs of trials"))
	}
	thresholds := []chart.Threshold{{Name: "violation", Y: c.Fleet}}
	if c.Fleet > c.Threshold+1e-9 {
		thresholds = append(thresholds, chart.Threshold{Name: "violation, if this were the only audit", Y: c.Threshold})
	}
	return chart.Lines(chart.Labels{
		Title: title, Caption: "It is the log-wealth of a bettor against the claim. If the claim is right, it rarely reaches the threshold, however long one watches." + caption,
		X: "pairs of trials", Y: "log-wealth (nats)",
	}, lines, thresholds, true)
}

// boundChart draws the certified bound over the trials.
func boundChart(c *read.Charts) chart.Figure {
	lines := plot.Paths(c.Path, func(p read.PathPoint) (int, float64, float64) { return p.Pairs, float64(p.Bound), float64(p.Bound) })
	title, caption := "No privacy loss is certified yet.", "Above the dashed line it is more than the query claims."
	if n := len(c.Path); n > 0 && c.Path[n-1].Bound > 0 {
		title = fmt.Sprintf("A privacy loss of at least epsilon %s is certified.", analysis.FormatLower(float64(c.Path[n-1].Bound)))
	}
	if len(lines) > 1 {
		caption += " The bound begins again with the fresh trials that confirm the violation, and only these certify it."
	}
	var thresholds []chart.Threshold
	if !c.NoClaim {
		thresholds = []chart.Threshold{{Name: "claim", Y: c.Claim}}
	}
	return chart.Lines(chart.Labels{Title: title, Caption: caption, X: "pairs of trials", Y: "epsilon"}, lines, thresholds, true)
}

// profileChart draws the delta that is certified for each epsilon.
func profileChart(c *read.Charts) chart.Figure {
	var claim []chart.Threshold
	if !c.NoClaim {
		claim = []chart.Threshold{{Name: "claimed epsilon", Vertical: true, X: c.Claim}}
		if c.Delta > 0 {
			claim = append(claim, chart.Threshold{Name: "claimed delta", Y: c.Delta})
		}
	}
	lines := []chart.Line{{Name: "delta is at least", Class: "a", Points: plot.ProfilePoints(c.Profile)}}
	return chart.Lines(chart.Labels{
		Title: "The privacy profile: for each epsilon, the delta that is certified at least.", Caption: "Each point holds alone, not all of them together.", X: "epsilon", Y: "delta",
	}, lines, claim, false)
}

// groupChart draws the estimates of groups: the one that gives the answer away first, then the largest.
func groupChart(d *read.Details) chart.Figure {
	r := d.Audit.Result()
	if len(r.Partitions) < 2 {
		return chart.Figure{}
	}
	var all []chart.Ranked
	for _, p := range r.Partitions {
		all = append(all, chart.Ranked{Name: p.Key.String(), Value: float64(p.EpsilonEstimate), Mark: p.EpsilonEstimate > d.Audit.Claim()})
	}
	culprit, title := "", "The groups with the largest estimates."
	if e := r.Event; e != nil && r.Verdict == analysis.Violation {
		culprit = e.Partition.String()
		for _, p := range r.Partitions {
			if away := givesAway(e, partsOf(r)); culprit == "" && strings.HasSuffix(away, p.Key.String()) {
				culprit = p.Key.String()
			}
		}
	}
	first := func(x chart.Ranked) bool { return culprit != "" && x.Name == culprit }
	slices.SortStableFunc(all, func(x, y chart.Ranked) int {
		if first(x) != first(y) {
			return map[bool]int{true: -1, false: 1}[first(x)]
		}
		return cmp.Compare(y.Value, x.Value) // NaN comes last
	})
	for i := range all {
		if first(all[i]) {
			all[i].Mark, title = true, "The group that gives the answer away, then those with the largest estimates."
		}
	}
	return chart.Ranking(chart.Labels{Title: title, Caption: "Estimates have no confidence statement and never decide.", X: "group", Y: "estimated epsilon"}, all)
}

// partsOf returns the places of a finding.
func partsOf(r analysis.Report) []analysis.Part {
	if r.Finding == nil {
		return nil
	}
	return r.Finding.What.Parts
}

// bar draws a claim and a bound for a line of a table. It ends at four times the claim, so that the claims of all lines
// are at one place.
func bar(claim, bound analysis.Float) template.HTML {
	most := 4 * float64(claim)
	if !(most > 0) || math.IsInf(most, 0) {
		most = 4
	}
	return chart.Bar(float64(claim), float64(bound), most, claimAndBound(claim, bound))
}
