package main

import (
	"strings"
	"testing"
)

func TestAnalyzeResponse(t *testing.T) {
	t.Parallel()
	words := file(t, "answers.txt", strings.Repeat("no\nno\nyes\nno\nyes\n", 40))
	analyze := func(args ...string) result {
		return call(t, "", append([]string{"analyze", "--response", "0.75", "--answers", words}, args...)...)
	}
	analyze("--epsilon", "1.1").want(t, exitDone, "no evidence against the claim", "epsilon 1.099", "yes", "0.3000 (", "60 (", "0.4286", "1.286")
	analyze("--epsilon", "1").want(t, exitViolation, "VIOLATION: response with this probability has the epsilon 1.099")
	analyze("--epsilon", "1", "--delta", "0.1").want(t, exitDone, "needs delta 0.07043")
	analyze().want(t, exitDone, "no claim was given")
	hidden := analyze("--values=false")
	hidden.want(t, exitDone, "category 2")
	if strings.Contains(hidden.stdout, "yes") {
		t.Errorf("a category is shown:\n%s", hidden.stdout)
	}
	report := analyze("--epsilon", "1.1", "-o", "json").object(t)
	shares, ok := report["shares"].([]any)
	if !ok || len(shares) != 2 || shares[1].(map[string]any)["category"] != "yes" || shares[1].(map[string]any)["observed"] != 80. || report["mean"] != nil || report["verdict"] != "no_evidence" {
		t.Errorf("%v", report)
	}
	table := file(t, "answers.csv", "answer\n"+strings.Repeat("0\n", 30)+strings.Repeat("1\n", 30)+strings.Repeat("2\n", 30))
	call(t, "", "analyze", "--response", "0.5", "--answers", table, "--categories", "3").want(t, exitDone, "mean", "90 (read as csv: columns answer")
	call(t, "", "analyze", "--response", "0.5", "--answers", table).want(t, exitFailure, "more than 2 categories: give their number with --categories")
	call(t, "", "analyze", "--response", "0.5", "--answers", file(t, "gap", "yes\n\nno\n")).want(t, exitFailure, "answer 2 is not one value")
	call(t, "", "analyze", "--response", "0.5").want(t, exitFailure, "give --response P --answers FILE")
	call(t, "", "analyze", "--answers", words).want(t, exitFailure, "give also --response P")
	analyze("--d0", words).want(t, exitFailure, "--d0 cannot be used with --response")
	analyze("--delta", "0.1").want(t, exitFailure, "--delta needs --epsilon")
}
