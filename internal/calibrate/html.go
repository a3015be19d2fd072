package calibrate

import (
	"fmt"
	"io"
	"strings"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/chart"
	"github.com/dpwatch/dpwatch/internal/report"
)

// limits ends every report.
var limits = report.Section{Title: "What does this not show?", Lines: []string{
	"No evidence of a violation is not a proof of privacy: a leak that is small against the claim takes more trials. A lower bound is certified with the stated " +
		"confidence; the probable cause and the fit of the noise are hints.",
}}

func write(w io.Writer, d report.Document) error {
	text, err := report.HTML(d)
	if err == nil {
		_, err = w.Write(text)
	}
	return err
}

// WriteHTML writes the report as one page with plots, which loads nothing.
func (r *Report) WriteHTML(w io.Writer) error {
	d := report.Document{Title: "Calibration of the functions of an engine", Lead: []string{r.summary()}}
	groups := map[bool]*chart.Group{false: {Name: "no violation"}, true: {Name: "violation"}}
	var tables []report.Section
	for i := range r.Cases {
		c := &r.Cases[i]
		bad := c.Verdict == analysis.Violation
		groups[bad].Points = append(groups[bad].Points, chart.Point{X: c.Epsilon, Y: float64(c.EpsilonLower)})
		if title := fmt.Sprintf("%s = %s", c.Function, c.Template); len(tables) == 0 || tables[len(tables)-1].Title != title {
			tables = append(tables, report.Section{Title: title, Table: &report.Table{Header: []string{"epsilon", "rows", "values", "verdict", "lower bound", "pairs", "noise", "finding", "what to read"}}})
		}
		table := tables[len(tables)-1].Table
		table.Rows = append(table.Rows, append(c.cells(), c.Finding, c.Page))
	}
	all := report.Section{Title: "All cases", Charts: []chart.Figure{chart.Points(chart.Labels{
		Title: "Certified lower bound of each case against the claimed epsilon.", X: "claimed epsilon", Y: "lower bound",
		Caption: "Violations are on the line or above it: an audit ends when the bound reaches the claim.",
	}, "the claim", []chart.Group{*groups[false], *groups[true]})}}
	d.Sections = append(append([]report.Section{all}, tables...), limits)
	return write(w, d)
}

// WriteHTML writes the report as one page with plots, which loads nothing.
func (r *ZooReport) WriteHTML(w io.Writer) error {
	d := report.Document{Title: "Calibration of the auditor", Lead: r.Faults()}
	if len(d.Lead) == 0 {
		d.Lead = []string{noFaults}
	}
	d.Lead = append(d.Lead, fmt.Sprintf("Each audit has the confidence %g and at most %d pairs of trials.", r.Confidence, r.MaxTrials))
	right := report.Section{Title: "Right queries: how many false alarms are there?", Table: &report.Table{Header: []string{"query", "trials", "false alarms", "99 % interval of the rate", "SQL"}}}
	wrong := report.Section{Title: "Wrong queries: how soon are they found?", Table: &report.Table{Header: []string{"query", "trials", "found", "pairs, median", "limit", "cause", "named first", "SQL"}}}
	var intervals []chart.Interval
	groups := []chart.Group{{Name: "whole"}, {Name: "hoisted"}}
	for _, row := range r.Rows {
		if row.Right {
			right.Table.Rows = append(right.Table.Rows, append(row.rightCells(), row.SQL))
			intervals = append(intervals, chart.Interval{Name: row.Name + ", " + row.trials(), Low: row.Lower, Mid: float64(row.Violations) / float64(row.Runs), High: row.Upper})
			continue
		}
		wrong.Table.Rows = append(wrong.Table.Rows, append(row.wrongCells(), row.SQL))
		g := &groups[0]
		if row.Hoisted {
			g = &groups[1]
		}
		g.Points = append(g.Points, chart.Point{X: float64(row.Limit), Y: float64(row.Median)})
	}
	right.Charts = []chart.Figure{chart.Intervals(chart.Labels{
		Title: "Rate of false alarms of each right query.", Caption: "The lines are 99 % intervals.", X: "rate, with its 99 % interval",
	}, intervals, 1-r.Confidence)}
	wrong.Charts = []chart.Figure{chart.Points(chart.Labels{
		Title: "Median number of pairs until a wrong query is found.", Caption: "On the line are detections at the limit of any auditor.", X: "limit of any auditor (pairs)", Y: "median (pairs)",
	}, "the limit", groups)}
	d.Sections = []report.Section{right, wrong, limits}
	return write(w, d)
}

// cells returns the figures of a case as texts.
func (c *Case) cells() []string {
	values := "within"
	switch {
	case c.Outside:
		values = "one outside"
	case c.Calls > 1:
		values = "two calls"
	}
	return []string{
		fmt.Sprint(c.Epsilon), fmt.Sprint(c.Rows), values, strings.ReplaceAll(string(c.Verdict), "_", " "), analysis.FormatLower(float64(c.EpsilonLower)), fmt.Sprint(c.Pairs), c.Fit.String(),
	}
}

func (r *Row) rightCells() []string {
	return []string{r.Name, r.trials(), fmt.Sprintf("%d of %d", r.Violations, r.Runs), fmt.Sprintf("%.1f to %.1f %%", 100*r.Lower, 100*r.Upper)}
}

func (r *Row) wrongCells() []string {
	return []string{r.Name, r.trials(), fmt.Sprintf("%d of %d", r.Violations, r.Runs), whole(r.Median), whole(r.Limit), r.Cause, fmt.Sprintf("%d of %d", r.CauseFirst, r.Violations)}
}
