package reports

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/config"
	"github.com/dpwatch/dpwatch/internal/app/show"
	"github.com/dpwatch/dpwatch/internal/ledger"
	"github.com/dpwatch/dpwatch/internal/read"
	reports "github.com/dpwatch/dpwatch/internal/report"
)

// mostInFront bounds the rows of the table on the first page.
const mostInFront = 24

// front is the first page: what was found, in which traffic, how sure it is, and who signs it.
func (r *Report) front() []reports.Section {
	var rows [][]string
	if !r.one {
		rows = append(rows, []string{"Found", r.found()})
	}
	for _, text := range r.scope() {
		rows = append(rows, []string{"Traffic", text})
	}
	for _, e := range r.Errors {
		rows = append(rows, []string{"False alarms", e.short(len(r.Errors) > 1)})
	}
	rows = append(rows, []string{"Signature", r.signature()}, []string{"Values", r.values()})
	all := []reports.Section{{Table: &reports.Table{Rows: rows}}, r.queries()}
	return append(all, reports.Section{Title: "Signatures", Signatures: []string{"For privacy: name, date, signature", "For the engine: name, date, signature"}})
}

// found counts the verdicts.
func (r *Report) found() string {
	n := r.verdicts()
	leaks, none, open := n[string(analysis.Violation)], n[string(analysis.NoEvidence)], n[string(analysis.Inconclusive)]
	text := fmt.Sprintf("%d %s, %d without evidence of a leak (not a proof), %d without a conclusion", leaks, plural(leaks, "leaks more than it claims", "leak more than they claim"), none, open)
	if rest := len(r.Audits) - leaks - none - open; rest > 0 {
		text += fmt.Sprintf(", %d not decided yet", rest)
	}
	return text
}

func plural(n int, one, several string) string {
	if n == 1 {
		return one
	}
	return several
}

// scope says what traffic the report is about, and which share of it was audited.
func (r *Report) scope() (texts []string) {
	for _, c := range r.Coverage {
		texts = append(texts, fmt.Sprintf("%s to %s, engine %s: %d statements. %s", show.Moment(c.Since), show.Moment(c.Until), strings.Join(c.Engines, ", "), c.Statements, strings.TrimSpace(c.Headline())))
	}
	if len(texts) > 0 {
		return texts
	}
	var all, decided int64
	for _, a := range r.Audits {
		if ledger.IsSequence(a.Summary) { // its statements are counted one by one
			continue
		}
		all += a.Executions
		if slices.Contains([]string{string(analysis.Violation), string(analysis.NoEvidence), string(analysis.Inconclusive)}, a.Verdict) {
			decided += a.Executions
		}
	}
	share := "-"
	if all > 0 {
		share = show.Percent(float64(decided) / float64(all))
	}
	return []string{fmt.Sprintf("%s: %d %s, run %d times; %s of the runs are of queries with a verdict. Other statements are in a report of a period.", r.period(), len(r.Audits), plural(len(r.Audits), "query", "queries"), all, share)}
}

// short says the error rate in a line.
func (e ErrorRate) short(named bool) string {
	text := map[string]string{
		config.Family: "with a probability of at most %.3g there is any, ever", config.FDR: "on average at most %.3g of all alarms are false",
	}[e.Rule]
	text = fmt.Sprintf(cmp.Or(text, "a probability of at most %.3g for each query"), e.Alpha)
	if e.FalseAlarms != nil && e.FalseAlarms.Audits > 0 {
		text += "; measured " + e.FalseAlarms.Text()
	} else {
		text += "; not measured: no query was audited on identical data"
	}
	if named {
		text = e.Engine + ": " + text
	}
	return text
}

// signature says who signs the manifest.
func (r *Report) signature() string {
	if r.key == "" {
		return "None: anyone may have changed this report (dpwatch report --key)"
	}
	return "manifest.json is signed with key " + r.key + "; dpwatch report --verify checks this file against it"
}

// values says whether values are shown.
func (r *Report) values() string {
	if r.Revealed {
		return "CONFIDENTIAL: values of rows and literals of statements may be shown"
	}
	return "Values of rows and literals of statements are withheld"
}

// queries is the table of the audits on the first page, the worst first.
func (r *Report) queries() reports.Section {
	sorted := r.sorted()
	t := &reports.Table{Header: []string{"Result", "Claimed", "Proven", "Pairs", "Audit", "Query"}, Lines: true}
	for _, a := range sorted[:min(len(sorted), mostInFront)] {
		t.Rows = append(t.Rows, []string{a.result(), a.claim(), a.proven(), fmt.Sprint(a.Trials), a.ID, show.Shortened(a.Summary)})
	}
	s := reports.Section{Table: t, Lines: []string{"Claimed and proven are epsilons: the smaller, the better protected. A query leaks if more is proven than it claims."}}
	if rest := len(sorted) - len(t.Rows); rest > 0 {
		s.Lines = append(s.Lines, fmt.Sprintf("%d more are in the list of all queries below.", rest))
	}
	return s
}

// sorted returns the audits, the worst first.
func (r *Report) sorted() []ReportAudit {
	all := slices.Clone(r.Audits)
	slices.SortStableFunc(all, func(a, b ReportAudit) int { return cmp.Compare(a.rank(), b.rank()) })
	return all
}

// worstFirst returns the indexes of the findings in the order of the table on the first page.
func (r *Report) worstFirst() []int {
	place := map[identity]int{}
	for i, a := range r.sorted() {
		place[identity{a.Engine, a.Key}] = i
	}
	order := make([]int, len(r.Findings))
	for i := range order {
		order[i] = i
	}
	at := func(i int) int { a := &r.Findings[i].Audit; return place[identity{a.EngineName, a.Key}] }
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(at(i), at(j)) })
	return order
}

// rank is the place of an audit in a list: violations by what is proven beyond the claim, answers without any epsilon
// before them, then audits without a conclusion, those that have not ended, and those without evidence.
func (a *ReportAudit) rank() float64 {
	const class = 1e9
	switch a.Verdict {
	case string(analysis.Violation):
		excess := class / 2
		if a.Lower != nil && a.Epsilon != nil {
			excess = min(excess, *a.Lower-*a.Epsilon)
		}
		if a.Accepted {
			return class - excess
		}
		return -excess
	case string(analysis.Inconclusive):
		return 2 * class
	case string(analysis.NoEvidence):
		return 4 * class
	}
	return 3 * class
}

// result is the verdict or the state in words for people.
func (a *ReportAudit) result() string {
	text := map[string]string{
		string(analysis.Violation): "LEAKS", string(analysis.NoEvidence): "no leak found", string(analysis.Inconclusive): "no conclusion",
	}[a.Verdict]
	if a.Accepted {
		text += ", accepted"
	}
	return cmp.Or(text, show.Words(a.Verdict))
}

func (a *ReportAudit) claim() string {
	switch {
	case a.Epsilon == nil:
		return "-"
	case a.Curve != "":
		return a.Curve
	case a.Delta != nil && *a.Delta > 0:
		return fmt.Sprintf("%g, delta %g", *a.Epsilon, *a.Delta)
	}
	return fmt.Sprintf("%g", *a.Epsilon)
}

// proven is the certified lower bound, if it holds.
func (a *ReportAudit) proven() string {
	switch {
	case a.Verdict == string(analysis.Inconclusive):
		return "-"
	case a.Verdict == string(analysis.Violation) && a.Lower == nil:
		return "no noise"
	case a.Lower == nil:
		return "-"
	}
	claimed := math.NaN()
	if a.Epsilon != nil {
		claimed = *a.Epsilon
	}
	return analysis.LowerText(analysis.Float(*a.Lower), analysis.Float(claimed))
}

// brief has the answers about an audit as a table: in a report of many.
func (r *Report) brief(i int) reports.Section {
	x := &r.Findings[i]
	a := &x.Audit
	rows := [][]string{{"query", a.Summary}, {"claimed", strings.TrimSpace(a.ClaimText() + ", from " + a.Result().Claimed.Source + " " + a.ClaimRule)}}
	if len(r.configurations) > 1 {
		rows = append(rows, []string{"engine", a.EngineName})
	}
	if to := read.DestinationsText(a.Destinations); to != "" {
		rows = append(rows, []string{"answers went", to})
	}
	if a.Accepted != nil {
		rows = append(rows, []string{"accepted", read.AcceptedText(a.Accepted)})
	}
	rows = append(rows, asked(x)...)
	for _, answer := range x.Answers()[:4] { // the others are alike in all findings, or at the end of the report
		lines := slices.Clone(answer.Lines)
		switch f := a.Result().Finding; {
		case answer.Question == "How bad?" && len(lines) > 1: // the next line has the figures
			lines[0], _, _ = strings.Cut(lines[0], " Reason: ")
		case answer.Question == "Why, probably?" && f != nil && len(f.Causes) > 1: // the others repeat the figures of the first
			lines = lines[:1]
			for _, c := range f.Causes[1:] {
				lines = append(lines, "It may also be: "+c.Name+". See "+c.Page)
			}
		}
		rows = append(rows, []string{answer.Question, strings.Join(lines, "\n")})
	}
	if len(x.Notes) > 0 {
		rows = append(rows, []string{"Not read", strings.Join(x.Notes, "\n")})
	}
	return reports.Section{Title: "Audit " + a.ID + ": " + show.Words(a.Verdict), Table: &reports.Table{Rows: rows}, Charts: r.plots[i][:min(2, len(r.plots[i]))], Whole: true}
}

// asked has the statements, if they may be shown.
func asked(x *read.Explanation) (rows [][]string) {
	if x.Asked.Statement != "" {
		rows = append(rows, []string{"statement", x.Asked.Statement})
		rows = append(rows, cells(read.ParameterRows(x.Asked.Parameters))...)
	}
	for _, next := range x.Asked.Then {
		rows = append(append(rows, []string{"then", next.Statement}), cells(read.ParameterRows(next.Parameters))...)
	}
	if sql := x.Audit.SQL; sql != nil {
		rows = append(rows, []string{"SQL on D0", sql.D0}, []string{"SQL on D1", sql.D1})
	}
	return rows
}
