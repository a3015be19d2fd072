package pages

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/dpwatch/dpwatch/internal/app/records"
	"github.com/dpwatch/dpwatch/internal/app/setup"
	"github.com/dpwatch/dpwatch/internal/app/show"
	"github.com/dpwatch/dpwatch/internal/chart"
)

// periods are the periods of the coverage.
var periods = []choice{{"1h", "1 hour"}, {"24h", "24 hours"}, {"168h", "7 days"}, {"720h", "30 days"}}

func (s *site) coverage(r *http.Request) (content, error) {
	v := r.URL.Query()
	since := v.Get("since")
	if since == "" {
		since = "24h"
	}
	period, err := time.ParseDuration(since)
	if err != nil || period <= 0 {
		return content{}, badRequestError{errors.New("since must be a duration of more than 0, for example 24h")}
	}
	d := sections{Menu: &menu{Name: "Period"}}
	for _, p := range periods {
		v.Set("since", p.Value)
		d.Menu.Links = append(d.Menu.Links, menuLink{"/coverage?" + v.Encode(), p.Name, p.Value == since})
	}
	all, err := s.relay.Ledgers.Coverages(r.Context(), v.Get("engine"), period)
	if errors.Is(err, setup.ErrNoLedger) {
		d.Sections = []section{faultSection("", err)}
		return content{"Coverage needs a ledger.", d}, nil
	}
	if err != nil {
		return content{}, err
	}
	for _, c := range all {
		d.Sections = append(d.Sections, coverageSections(&c, len(all) > 1)...)
	}
	return content{coverageTitle(all), d}, nil
}

// coverageTitle sums up coverages.
func coverageTitle(all []records.Coverage) string {
	var statements, audited int64
	for _, c := range all {
		statements += c.Statements
		for _, class := range c.Classes {
			if class.Class.Audited() {
				audited += class.Statements
			}
		}
	}
	if statements == 0 {
		return "No statement was seen in this period."
	}
	return fmt.Sprintf("Of %s, %.3g %% were executions of audited queries.", plural(statements, "statement", "statements"), 100*float64(audited)/float64(statements))
}

func coverageSections(c *records.Coverage, named bool) []section {
	classes := section{Header: []string{"What became of them", "Statements", "Distinct DP queries"}, Empty: "No statement was seen in this period."}
	why := section{Title: "Why are statements not audited?", Header: []string{"Reason", "Statements", "What to do"}, Empty: "No statement was refused or lost."}
	var examples []section
	came := section{Title: "What came of the audits?", Header: []string{"Result", "Statements", "What to do"}}
	if named && len(c.Engines) > 0 {
		classes.Title = "Engine " + c.Engines[0]
		why.Title += " " + classes.Title
		came.Title += " " + classes.Title
	}
	for _, class := range c.Classes {
		classes.Rows = append(classes.Rows, []cell{
			text(class.Class.Title()), {Text: fmt.Sprintf("%d, %.3g %%", class.Statements, 100*class.Share), Meter: chart.Meter(class.Share)}, text(class.Queries),
		})
		for i := range class.Parts {
			p := &class.Parts[i]
			if len(p.Samples) > 0 {
				one := sampleSection(p)
				if classes.Title != "" {
					one.Title += " " + classes.Title
				}
				examples = append(examples, one)
			}
			row := []cell{{Text: class.Class.Title() + ": " + p.Reason}, text(p.Statements), {Text: p.Remedy}}
			switch {
			case p.Remedy == "":
			case class.Class.Audited():
				came.Rows = append(came.Rows, row)
			default:
				why.Rows = append(why.Rows, row)
			}
		}
	}
	if c.Statements == 0 {
		classes.Rows = nil
	}
	if len(came.Rows) == 0 {
		return append([]section{classes, why}, examples...)
	}
	return append([]section{classes, why, came}, examples...)
}

// sampleSection returns the samples of a reason.
func sampleSection(row *records.CoverageRow) section {
	s := section{Title: "Examples: " + strings.ReplaceAll(row.Reason, "_", " "), Header: []string{"Last seen", "Who", "Statement", "What to do"}}
	for i := range row.Samples {
		x := &row.Samples[i]
		s.Rows = append(s.Rows, []cell{text(show.Moment(x.At)), {Text: x.Who()}, {Text: x.What(), Code: true}, {Text: x.Why()}})
	}
	return s
}

func (s *site) budgets(r *http.Request) (content, error) {
	engine := r.URL.Query().Get("engine")
	var d sections
	all, err := s.relay.Ledgers.Budgets(r.Context(), engine)
	if err != nil {
		d.Sections = append(d.Sections, faultSection("Privacy budgets", err))
	}
	exceeded, budgets := 0, 0
	for _, b := range all {
		for _, use := range b.Budgets {
			budgets++
			one, over := budgetSection(&use, b.Engine, len(all) > 1)
			exceeded += over
			d.Sections = append(d.Sections, one)
		}
	}
	if err == nil && budgets == 0 {
		d.Sections = append(d.Sections, section{Title: "Privacy budgets", Notes: []string{"The configuration has no budgets: add the section budgets, and this page shows what each analyst has received by the claims of all answers."}})
	}
	d.Sections = append(d.Sections, s.sequences(r, engine))
	title := "Budgets and sequences: what analysts learn from several answers together."
	if exceeded > 0 {
		title = plural(exceeded, "analyst exceeds a privacy budget.", "analysts exceed a privacy budget.")
	}
	return content{title, d}, nil
}

// budgetSection returns the section of a budget, and how many analysts exceed it.
func budgetSection(use *records.BudgetUse, engine string, named bool) (s section, exceeded int) {
	s = section{
		Title: "Budget " + use.Name, Notes: []string{fmt.Sprintf("Epsilon %g, delta %g, per %s, composition %s.", use.Epsilon, use.Delta, use.Period, use.Composition)},
		Header: []string{"Analyst", "Answers", "Spent", "Last day", "Left", "Claims not known"}, Empty: "No analyst has received an answer with a claim.",
	}
	if use.Period == "ever" {
		s.Notes[0] = fmt.Sprintf("Epsilon %g, delta %g for all answers ever, composition %s.", use.Epsilon, use.Delta, use.Composition)
	}
	if named {
		s.Title += " of engine " + engine
	}
	for _, a := range use.Analysts {
		spent := cell{Text: "not bounded by this theorem"}
		if a.Spent != nil {
			share := *a.Spent / use.Epsilon
			spent = cell{Text: fmt.Sprintf("%.4g, %.3g %%", *a.Spent, 100*share), Meter: chart.Meter(share)}
		}
		left := "enough at the rate of the last day"
		switch {
		case a.Exceeded:
			exceeded++
			left = "exceeded"
		case a.DaysLeft != nil:
			left = fmt.Sprintf("%.1f days", *a.DaysLeft)
		}
		name := a.User + ", database " + a.Database
		if a.Application != "" {
			name += ", application " + a.Application
		}
		s.Rows = append(s.Rows, []cell{text(name), text(a.Answers), spent, text(fmt.Sprintf("%.4g", a.PerDay)), text(left), text(a.Unread)})
	}
	return s, exceeded
}

// sequenceSummary is what summaries of sequences have after the number of their queries.
const sequenceSummary = "queries together: "

// sequences lists the sequences of queries that are audited as one mechanism.
func (s *site) sequences(r *http.Request, engine string) section {
	out := section{
		Title: "Sequences", Header: []string{"Queries", "State", "Claim and lower bound, together"},
		Notes: []string{"Queries of a session that may share noise are audited together against the sum of their claims."},
		Empty: "No sequence is audited: set audit.sequences, or no session has repeated a sequence of queries yet.",
	}
	list, err := s.relay.Queries.List(r.Context(), listOptions(engine, sequenceSummary))
	if err != nil {
		return faultSection("Sequences", err)
	}
	for i := range list.Audits {
		a := &list.Audits[i]
		out.Rows = append(out.Rows, []cell{query(a.ID, show.Printable(a.Summary)), {Meter: statusOf(a.ListStatus())}, {Text: claimAndBound(a.Claim(), a.Bound()), Meter: bar(a.Claim(), a.Bound())}})
	}
	if list.Total > len(list.Audits) {
		out.Notes = append(out.Notes, fmt.Sprintf("The first %d of %d; the page Queries has all.", len(list.Audits), list.Total))
	}
	return out
}
