package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/internal/app/records"
)

// budgetAlert is in the log line of an exceeded budget.
const budgetAlert = `"dp.finding.kind":"budget_exceeded","dp.budget.name":"analysts"`

// checkBudgets checks the budget that TestRunLedger's two answers of 0.5 exceed, in the ledger and at the admin port.
func (s *sidecar) checkBudgets(t *testing.T) {
	t.Helper()
	r := call(t, "", "budgets", "--config", s.config, "-o", "json")
	_, answer := s.get(t, "/api/budgets")
	for from, text := range map[string]string{"the ledger": r.stdout, "the admin port": answer} {
		var b records.Budgets
		if err := json.Unmarshal([]byte(text), &b); err != nil || len(b.Budgets) != 1 || len(b.Budgets[0].Analysts) != 1 {
			t.Fatalf("%s: %v\n%s%s", from, err, text, r.stderr)
		}
		a := b.Budgets[0].Analysts[0]
		if a.Answers != 2 || a.Spent == nil || *a.Spent != 1 || a.Basic != 1 || a.Advanced != nil || !a.Exceeded || a.DaysLeft != nil || a.PerDay != 1 {
			t.Errorf("%s: %+v; want 2 answers that claim 1 together, which exceeds the budget", from, a)
		}
	}
	if text := call(t, "", "budgets", "--config", s.config).stdout; !strings.Contains(text, "budget analysts: epsilon 0.75, delta 0, all answers count, composition best") || !strings.Contains(text, "133.3 %") {
		t.Errorf("as text:\n%s", text)
	}
	s.until(t, "the metric", func() bool {
		_, metrics := s.get(t, "/metrics")
		return strings.Contains(metrics, `dpwatch_privacy_budget_exceeded_analysts{budget="analysts"} 1`)
	})
	if strings.Contains(s.log.String(), budgetAlert) {
		t.Error("the exceeded budget is reported again by another process")
	}
}
