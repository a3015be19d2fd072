package calibrate

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"strings"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/plot"
)

//go:embed page.html
var pageHTML string

var pageTemplate = template.Must(template.New("page").Parse(pageHTML))

// page is a report as a page that loads nothing.
type page struct {
	Title   string
	Summary []sentence
	Plots   []drawing
	Tables  []htmlTable
}

type sentence struct {
	Text string
	Bad  bool
}

type drawing struct {
	Label string
	SVG   template.HTML
}

type htmlTable struct {
	Title string
	Head  []string
	Rows  []htmlRow
}

type htmlRow struct {
	Bad   bool
	Cells []string
}

func (p *page) add(label string, svg []byte, err error) error {
	if err == nil && svg != nil {
		p.Plots = append(p.Plots, drawing{label, template.HTML(svg)}) // #nosec G203 -- made by package plot, which escapes texts
	}
	return err
}

// WriteHTML writes the report as one page with plots, which loads nothing.
func (r *Report) WriteHTML(w io.Writer) error {
	p := page{Title: "Calibration of the functions of an engine", Summary: []sentence{{r.summary(), r.Violations() > 0}}}
	groups := map[bool]*plot.Group{false: {Name: "no violation"}, true: {Name: "violation"}}
	var table *htmlTable
	for i := range r.Cases {
		c := &r.Cases[i]
		bad := c.Verdict == analysis.Violation
		groups[bad].Points = append(groups[bad].Points, [2]float64{c.Epsilon, float64(c.EpsilonLower)})
		if title := fmt.Sprintf("%s = %s", c.Function, c.Template); table == nil || table.Title != title {
			p.Tables = append(p.Tables, htmlTable{Title: title, Head: []string{"epsilon", "rows", "values", "verdict", "lower bound", "pairs", "noise", "finding", "what to read"}})
			table = &p.Tables[len(p.Tables)-1]
		}
		table.Rows = append(table.Rows, htmlRow{bad, append(c.cells(), c.Finding, c.Page)})
	}
	svg, err := plot.Points("Certified lower bound against the claim", "claimed epsilon", "lower bound", "the claim", []plot.Group{*groups[false], *groups[true]})
	if err := p.add("Certified lower bound of each case against the claimed epsilon; above the line is a violation", svg, err); err != nil {
		return err
	}
	return pageTemplate.Execute(w, p)
}

// WriteHTML writes the report as one page with plots, which loads nothing.
func (r *ZooReport) WriteHTML(w io.Writer) error {
	p := page{Title: "Calibration of the auditor"}
	for _, fault := range r.Faults() {
		p.Summary = append(p.Summary, sentence{fault, true})
	}
	if len(p.Summary) == 0 {
		p.Summary = []sentence{{Text: "Right queries are not accused more often than promised, and every wrong one is found."}}
	}
	p.Summary = append(p.Summary, sentence{Text: fmt.Sprintf("Each audit has the confidence %g and at most %d pairs of trials.", r.Confidence, r.MaxTrials)})
	right := htmlTable{Title: "Right queries: how often are they accused?", Head: []string{"query", "trials", "false alarms", "99 % interval of the rate", "SQL"}}
	wrong := htmlTable{Title: "Wrong queries: how soon are they found?", Head: []string{"query", "trials", "found", "pairs, median", "limit", "cause", "named first", "SQL"}}
	var intervals []plot.Interval
	groups := []plot.Group{{Name: "whole"}, {Name: "hoisted"}}
	for _, row := range r.Rows {
		if row.Right {
			right.Rows = append(right.Rows, htmlRow{row.Lower > 1-r.Confidence, append(row.rightCells(), row.SQL)})
			intervals = append(intervals, plot.Interval{Name: row.Name + ", " + row.trials(), Low: row.Lower, Mid: float64(row.Accused) / float64(row.Runs), High: row.Upper})
			continue
		}
		wrong.Rows = append(wrong.Rows, htmlRow{2*row.Accused < row.Runs, append(row.wrongCells(), row.SQL)})
		g := &groups[0]
		if row.Hoisted {
			g = &groups[1]
		}
		g.Points = append(g.Points, [2]float64{float64(row.Limit), float64(row.Median)})
	}
	p.Tables = []htmlTable{right, wrong}
	svg, err := plot.Intervals("False alarms at right queries", "rate, with its 99 % interval", intervals, 1-r.Confidence)
	if err := p.add("Rate of false alarms of each right query, with its 99 % interval", svg, err); err != nil {
		return err
	}
	svg, err = plot.Points("Pairs of trials to detection", "limit of any auditor", "median", "the limit", groups)
	if err := p.add("Median number of pairs until a wrong query is found, against the limit of any auditor", svg, err); err != nil {
		return err
	}
	return pageTemplate.Execute(w, p)
}

// cells returns the figures of a case as texts.
func (c *Case) cells() []string {
	values := "within"
	if c.Outside {
		values = "one outside"
	}
	return []string{
		fmt.Sprint(c.Epsilon), fmt.Sprint(c.Rows), values, strings.ReplaceAll(string(c.Verdict), "_", " "), analysis.FormatLower(float64(c.EpsilonLower)), fmt.Sprint(c.Pairs), c.Fit.String(),
	}
}

func (r *Row) rightCells() []string {
	return []string{r.Name, r.trials(), fmt.Sprintf("%d of %d", r.Accused, r.Runs), fmt.Sprintf("%.1f to %.1f %%", 100*r.Lower, 100*r.Upper)}
}

func (r *Row) wrongCells() []string {
	return []string{r.Name, r.trials(), fmt.Sprintf("%d of %d", r.Accused, r.Runs), whole(r.Median), whole(r.Limit), r.Cause, fmt.Sprintf("%d of %d", r.CauseFirst, r.Accused)}
}
