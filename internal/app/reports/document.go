package reports

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/app/show"
	"github.com/dpwatch/dpwatch/internal/read"
	reports "github.com/dpwatch/dpwatch/internal/report"
)

// document returns the report for readers.
func (r *Report) document() reports.Document {
	d := reports.Document{Title: r.title(), Lead: []string{r.headline()}}
	if r.one && len(r.Findings) == 1 {
		d.Title = "Audit " + r.Findings[0].Audit.ID + ": " + show.Words(r.Findings[0].Audit.Verdict)
	}
	if r.Revealed {
		d.Lead = append(d.Lead, "CONFIDENTIAL: this report may show values of rows and statements with their literals. Protect it like the raw data.")
	}
	d.Sections = r.front()
	next := len(d.Sections)
	for _, i := range r.worstFirst() {
		if r.one {
			d.Sections = append(d.Sections, r.finding(i))
		} else {
			d.Sections = append(d.Sections, r.brief(i))
		}
	}
	d.Sections = append(d.Sections, r.periodSections()...)
	if len(r.Audits) > mostInFront {
		d.Sections = append(d.Sections, r.list())
	}
	d.Sections = append(d.Sections, r.acceptances(), r.method(), limits(), r.about())
	d.Sections[next].Page = true
	return printableDocument(d.Sections, d)
}

func (r *Report) title() string {
	days := r.Until.Format(time.DateOnly)
	if r.Since != nil {
		days = r.Since.Format(time.DateOnly) + " to " + days
	}
	return "Audit of differential privacy, " + days
}

func (r *Report) period() string {
	if r.Since == nil {
		return "everything until " + show.Moment(r.Until)
	}
	return show.Moment(*r.Since) + " to " + show.Moment(r.Until)
}

func (r *Report) headline() string {
	if r.one {
		return r.Findings[0].Audit.Summary
	}
	found, accepted := 0, 0
	for _, a := range r.Audits {
		if a.Verdict == string(analysis.Violation) {
			found++
			if a.Accepted {
				accepted++
			}
		}
	}
	return fmt.Sprintf("Of %d audited or known queries, %d leak more than they claim; %d of these are accepted.", len(r.Audits), found, accepted)
}

// about says what the report was made from.
func (r *Report) about() reports.Section {
	rows := [][]string{{"made", show.Moment(r.Created) + ", by dpwatch " + r.Version}, {"period", r.period()}}
	for _, name := range r.engines() {
		rows = append(rows, []string{"engine", name}, []string{"configuration of " + name, "hash " + r.configurations[name]})
	}
	for _, name := range slices.Sorted(maps.Keys(r.postgresql)) {
		rows = append(rows, []string{"PostgreSQL, " + name, orDash(r.postgresql[name])})
	}
	if r.OtherEngines > 0 {
		rows = append(rows, []string{"not in this report", fmt.Sprintf("%d audits of engines that the configuration does not have", r.OtherEngines)})
	}
	return reports.Section{Title: "What was this report made from?", Table: &reports.Table{Rows: rows}}
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// finding has the answers about an audit, as dpwatch explain gives them.
func (r *Report) finding(i int) reports.Section {
	x, s := &r.Findings[i], reports.Section{}
	a, claimed := &x.Audit, x.Audit.Result().Claimed
	s.Title = "Audit " + a.ID + ": " + show.Words(a.Verdict)
	rows := [][]string{{"query", a.Summary}, {"engine", a.EngineName}, {"claimed", a.ClaimText()}, {"claim from", strings.TrimSpace(claimed.Source + " " + a.ClaimRule)}, {"key", a.Key}}
	for _, row := range r.Audits {
		if row.Key == a.Key && row.Engine == a.EngineName {
			rows = append(rows, []string{"version of the copies", orDash(row.DataEpoch)}, []string{"version of the engine", orDash(row.EngineEpoch)},
				[]string{"evidence begun", fmt.Sprint(row.Begun, " times")}, []string{"evidence, SHA-256", orDash(row.Evidence)})
		}
	}
	if to := read.DestinationsText(a.Destinations); to != "" {
		rows = append(rows, []string{"answers went", to})
	}
	if a.Accepted != nil {
		rows = append(rows, []string{"accepted", read.AcceptedText(a.Accepted)})
	}
	s.Table = &reports.Table{Rows: append(rows, asked(x)...)}
	for _, answer := range x.Answers() {
		s.Sections = append(s.Sections, reports.Section{Title: answer.Question, Lines: answer.Lines})
	}
	if len(r.plots[i]) > 0 {
		s.Sections = append(s.Sections, reports.Section{Title: "The evidence in plots", Charts: r.plots[i]})
	}
	if actions := cells(read.ActionRows(x.Ledger.Actions)); len(actions) > 0 {
		s.Sections = append(s.Sections, reports.Section{Title: "What operators did, the latest first", Table: &reports.Table{Rows: actions}})
	}
	return s
}

func cells(rows [][2]string) (all [][]string) {
	for _, r := range rows {
		all = append(all, r[:])
	}
	return all
}

// list is the table of all audits.
func (r *Report) list() reports.Section {
	t := &reports.Table{Header: []string{"Audit", "Engine", "Verdict or state", "Claimed", "Lower bound", "Pairs of trials", "Executions", "Last run", "Query"}}
	for _, a := range r.Audits {
		t.Rows = append(t.Rows, []string{a.ID, a.Engine, show.Words(a.Verdict), a.claim(), a.proven(), fmt.Sprint(a.Trials), fmt.Sprint(a.Executions), a.LastSeen.Format(time.DateTime), show.Shortened(a.Summary)})
	}
	return reports.Section{Title: "Which queries were audited? The list of all", Lines: []string{"Verdicts are those of the time at which this report was made. Executions are those of all time."}, Table: t}
}

func (r *Report) acceptances() reports.Section {
	s := reports.Section{Title: "Which violations are accepted?"}
	if len(r.Accepted) == 0 {
		s.Lines = []string{"None."}
		return s
	}
	s.Table = &reports.Table{Header: []string{"Audit", "By", "On", "Until", "Reason", "Violation"}}
	for _, a := range r.Accepted {
		open := "resolved"
		if a.Open {
			open = "open"
		}
		s.Table.Rows = append(s.Table.Rows, []string{a.Key[:min(12, len(a.Key))], a.Operator, show.Moment(a.At), show.Moment(a.Until), a.Reason, open})
	}
	return s
}

// printableDocument replaces control characters: names come from clients.
func printableDocument(sections []reports.Section, d reports.Document) reports.Document {
	for i := range d.Lead {
		d.Lead[i] = show.Printable(d.Lead[i])
	}
	d.Sections = sections
	d.Title = show.Printable(d.Title)
	var visit func(all []reports.Section)
	visit = func(all []reports.Section) {
		for i := range all {
			s := &all[i]
			s.Title = show.Printable(s.Title)
			s.Lines = slices.Clone(s.Lines)
			for k := range s.Lines {
				s.Lines[k] = show.Printable(s.Lines[k])
			}
			if s.Table != nil {
				for _, row := range s.Table.Rows {
					for k := range row {
						row[k] = show.Printable(row[k])
					}
				}
			}
			visit(s.Sections)
		}
	}
	visit(d.Sections)
	return d
}
