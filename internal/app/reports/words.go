package reports

import (
	"fmt"
	"strings"

	"github.com/dpwatch/dpwatch/config"
	"github.com/dpwatch/dpwatch/internal/app/records"
	"github.com/dpwatch/dpwatch/internal/app/show"
	reports "github.com/dpwatch/dpwatch/internal/report"
)

// method says how audits work, with the figures of this report.
func (r *Report) method() reports.Section {
	s := reports.Section{Title: "How was this found?", Lines: []string{
		"dpwatch captures queries that clients send to the engine, and replays them on two copies of the data that differ in one person (or other privacy unit): D0 has the person, D1 does not. " +
			"Every execution is fresh and draws its own noise. If the query keeps its claim, no answer is more than exp(epsilon) times as probable on one copy as on the other, apart from delta.",
		"The audit bets against that claim with each pair of executions. The bets cannot be won in the long run against a query that keeps it, however often one looks, so a large gain is evidence. " +
			"A violation is reported when the evidence passes a threshold, which follows from the error rate below, and fresh executions have confirmed it.",
		"The lower bound is certified: it exceeds the true privacy loss with a probability of at most 1 minus the confidence. Estimates and probable causes are not certified, and are marked as likely.",
		"The order of the executions is random; its seed was drawn before the first one and is in the manifest. The noise of the engine cannot be repeated. A finding is therefore checked with fresh executions, not repeated bit by bit: dpwatch audits reproduce.",
	}}
	for _, e := range r.Errors {
		s.Lines = append(s.Lines, e.sentence())
		if e.FalseAlarms != nil {
			s.Lines = append(s.Lines, "False alarms of "+e.Engine+", measured: "+e.FalseAlarms.Text()+".")
		}
	}
	return s
}

// sentence says what the error rate of an engine holds for.
func (e ErrorRate) sentence() string {
	counts := fmt.Sprintf("In the ledger, evidence began %d times, and %d times it ended in a violation, over all its engines.", e.Begun, e.Reported)
	single := fmt.Sprintf("Of a single audit of a query that keeps its claim, the probability of a false alarm, ever, is at most %.3g.", e.Alpha)
	switch e.Rule {
	case config.Family:
		return fmt.Sprintf("Error rate of %s: the probability that there is any false alarm, among all audits in the ledger and ever, is at most %.3g (audit.error_rate: family). %s That of a single audit is smaller, the more so the later it began. %s", e.Engine, e.Alpha, single, counts)
	case config.FDR:
		return fmt.Sprintf("Error rate of %s: the expected share of false alarms among all alarms is at most %.3g (audit.error_rate: fdr). %s %s", e.Engine, e.Alpha, single, counts)
	}
	return fmt.Sprintf("Error rate of %s: %s Over all audits it is not bounded (audit.error_rate: per_audit). %s", e.Engine, single, counts)
}

// limits says what no report proves.
func limits() reports.Section {
	return reports.Section{Title: "What does this report not prove?", Lines: []string{
		"No evidence of a violation is not a proof of privacy. The trials were run with the data, the persons and the queries that are named here. Other data, other persons and rarer events were not tried.",
		"A lower bound says that the loss is at least so large. It may be larger.",
		"The claim is compared with what the engine does on the copies. That the copies are like the production data, and that the engine on the copies is that of production, follows from the configuration and not from the audit.",
		"Queries that are not audited (see the coverage, if it is in the report) may leak. The composition of many answers is bounded by the budgets only if every claim holds.",
		"The signature shows that the files are those that the holder of the key signed, with the configuration and the ledger as they were then. It does not show that the ledger was right.",
		"Hashes of the configuration and epochs are in the manifest beside this report. dpwatch report --verify checks the files against it.",
	}}
}

// periodSections are the parts of a report of a period: verdicts, coverage and budgets.
func (r *Report) periodSections() (all []reports.Section) {
	if r.Since == nil {
		return nil
	}
	t := &reports.Table{Header: []string{"Engine", "Verdict", "Queries", "Times"}}
	for _, x := range r.Reached {
		t.Rows = append(t.Rows, []string{x.Engine, show.Words(x.Verdict), fmt.Sprint(x.Queries), fmt.Sprint(x.Events)})
	}
	all = append(all, reports.Section{Title: "What was found in the period?", Lines: []string{"How many queries came to each verdict in the period, and how often: audits are repeated, and begin again when the engine or the copies change."}, Table: t})
	for _, c := range r.Coverage {
		s := reports.Section{Title: "How much of the traffic was audited? Engine " + strings.Join(c.Engines, ", "), Lines: []string{
			strings.TrimSpace(c.Headline()), "Times are in whole hours, UTC. Statements count as audited if their query had an audit when they ran; the verdict is that of the time of this report.",
		}, Table: &reports.Table{Header: []string{"Statements that were", "Statements", "Share", "Queries"}}}
		for _, class := range c.Classes {
			if class.Statements == 0 && class.Queries == 0 {
				continue
			}
			s.Table.Rows = append(s.Table.Rows, []string{class.Class.Title(), fmt.Sprint(class.Statements), show.Percent(class.Share), show.Count(class.Queries)})
			for _, p := range class.Parts {
				s.Table.Rows = append(s.Table.Rows, []string{"    " + show.Words(p.Reason), fmt.Sprint(p.Statements), show.Percent(records.Share(p.Statements, c.Statements)), show.Count(p.Queries)})
			}
		}
		all = append(all, s)
	}
	for _, b := range r.Budgets {
		all = append(all, budgetSection(b))
	}
	return all
}

// budgetSection shows what analysts received, at the time of the report.
func budgetSection(b records.Budgets) reports.Section {
	s := reports.Section{Title: "How much privacy was used up? Engine " + b.Engine, Lines: []string{"By the claims of all answers together, at the time of this report, in the period of each budget. See docs/budgets.md."}}
	if len(b.Budgets) == 0 {
		s.Lines = []string{"The configuration has no budgets."}
		return s
	}
	s.Table = &reports.Table{Header: []string{"Budget", "Epsilon", "Period", "Analyst", "Answers", "Spent", "State"}}
	for _, use := range b.Budgets {
		for _, a := range use.Analysts {
			state := "within"
			if a.Exceeded {
				state = "EXCEEDED"
			}
			who := strings.TrimSuffix(strings.Join([]string{a.User, a.Database, a.Application}, " / "), " / ")
			s.Table.Rows = append(s.Table.Rows, []string{use.Name, fmt.Sprint(use.Epsilon), use.Period, who, fmt.Sprint(a.Answers), show.Bounded(a.Spent, 1), state})
		}
	}
	return s
}
