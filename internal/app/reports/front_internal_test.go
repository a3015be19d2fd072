package reports

import (
	"strings"
	"testing"
	"time"

	"github.com/dpwatch/dpwatch/internal/app/records"
	"github.com/dpwatch/dpwatch/internal/app/show"
	"github.com/dpwatch/dpwatch/internal/read"
	"github.com/dpwatch/dpwatch/internal/report"
)

// TestFront: the table of the first page has the worst first, in words for people who do not know the ledger's; the
// rows above it say what was audited, how often audits are wrong, and who signed.
func TestFront(t *testing.T) {
	t.Parallel()
	row := func(verdict string, lower float64, accepted bool) ReportAudit {
		a := ReportAudit{Audit: report.Audit{Engine: "main", Verdict: verdict, Epsilon: new(1.0), Delta: new(0.0)}}
		a.ID, a.Lower, a.Accepted, a.Executions = verdict, show.Finite(lower), accepted, 10
		return a
	}
	violation := func(lower float64) ReportAudit { return row("violation", lower, false) }
	deterministic := violation(0)
	deterministic.Lower = nil
	r := &Report{
		Until: time.Date(2027, 2, 3, 0, 0, 0, 0, time.UTC), configurations: map[string]string{"main": ""},
		Audits: []ReportAudit{row("no_evidence", .4, false), row("queued", 0, false), row("violation", 9, true), violation(1.0001), row("inconclusive", .3, false), violation(3), deterministic},
		Errors: []ErrorRate{{Engine: "main", Rule: "fdr", Alpha: .05, FalseAlarms: &read.FalseAlarms{Audits: 20, RateUpper: .16, Confidence: .95}}},
	}
	sequence := row("no_evidence", .2, false)
	sequence.Summary = "2 queries together: SELECT 1; SELECT 2"
	r.Audits = append(r.Audits, sequence)
	all := r.front()
	facts := ""
	for _, row := range all[0].Table.Rows {
		facts += strings.Join(row, ": ") + "\n"
	}
	for _, want := range []string{
		"Found: 4 leak more than they claim, 2 without evidence of a leak (not a proof), 1 without a conclusion, 1 not decided yet\n", "8 queries, run 70 times; 85.7 % of the runs are of queries with a verdict",
		"False alarms: on average at most 0.05 of all alarms are false; measured on identical data 0 of 20 control audits", "Signature: None: anyone may have changed", "Values of rows and literals of statements are withheld",
	} {
		if !strings.Contains(facts, want) {
			t.Errorf("no %q in\n%s", want, facts)
		}
	}
	got := ""
	for _, row := range all[1].Table.Rows {
		got += row[0] + " " + row[2] + "\n"
	}
	if want := "LEAKS no noise\nLEAKS 3\nLEAKS > 1\nLEAKS, accepted 9\nno conclusion -\nqueued 0\nno leak found 0.4\nno leak found 0.2\n"; got != want {
		t.Errorf("rows\n%swant\n%s", got, want)
	}
	if len(all[2].Signatures) != 2 {
		t.Error("two people do not sign")
	}

	r.key, r.Revealed, r.Errors[0].FalseAlarms = "SHA256:3f9c", true, nil
	r.Coverage = []records.Coverage{{Engines: []string{"main"}, Statements: 9}}
	for range mostInFront {
		r.Audits = append(r.Audits, violation(2))
	}
	facts = ""
	for _, row := range r.front()[0].Table.Rows {
		facts += strings.Join(row, ": ") + "\n"
	}
	for _, want := range []string{"signed with key SHA256:3f9c", "CONFIDENTIAL", "engine main: 9 statements. 0.0 % of the statements that may be DP queries are audited", "not measured"} {
		if !strings.Contains(facts, want) {
			t.Errorf("no %q in\n%s", want, facts)
		}
	}
	if s := r.queries(); len(s.Table.Rows) != mostInFront || s.Table.Rows[0][2] != "no noise" || !strings.HasPrefix(s.Lines[1], "8 more are in the list") {
		t.Errorf("%d rows, %v", len(s.Table.Rows), s.Lines)
	}
}
