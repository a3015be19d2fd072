package evidence_test

import (
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/audit/evidence"
	"github.com/dpwatch/dpwatch/internal/outcome"
)

// TestLeftOut: neighbours on which the query reads the same as on D0 have no trials and no verdict that there is no
// evidence. The others decide, and are reported first. It is kept with the evidence.
func TestLeftOut(t *testing.T) {
	t.Parallel()
	out, in, reader := evidence.LeftOut{Why: "a condition"}, evidence.LeftOut{}, evidence.LeftOut{Why: "a condition", Reader: "the function f"}
	for name, c := range map[string]struct {
		all     []evidence.LeftOut
		decided bool
		codes   []string
		worst   int
	}{
		"all":          {[]evidence.LeftOut{out, out}, true, []string{analysis.Vacuous, analysis.Vacuous}, 0},
		"one":          {[]evidence.LeftOut{out, in}, false, []string{analysis.Vacuous, ""}, 1},
		"one may read": {[]evidence.LeftOut{reader, in}, false, []string{"", ""}, 0},
		"none":         {nil, false, []string{"", ""}, 0},
	} {
		e, err := evidence.NewReplayed(analysis.Claim{Epsilon: 1}, analysis.Options{Confidence: .95, MaxTrials: 500}, 2, true)
		if err != nil {
			t.Fatal(err)
		}
		e.SetLeftOut(c.all)
		state, err := e.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		e = new(evidence.Evidence)
		if err := e.UnmarshalBinary(state); err != nil {
			t.Fatal(err)
		}
		if e.Decided() != c.decided || e.Opens() == c.decided {
			t.Errorf("%s: decided %t, opens %t", name, e.Decided(), e.Opens())
		}
		for range 3 {
			e.Add([]outcome.Outcome{number(1), number(1), number(1)})
		}
		worst, reports := e.Worst()
		if worst != c.worst {
			t.Errorf("%s: neighbour %d is reported, want %d", name, worst, c.worst)
		}
		for i, r := range reports {
			if r.ReasonCode != c.codes[i] || (r.Trials.D0 == 0) != (c.codes[i] == analysis.Vacuous) {
				t.Errorf("%s, neighbour %d: %q after %d trials, want %q", name, i, r.ReasonCode, r.Trials.D0, c.codes[i])
			}
			if r.ReasonCode != "" && (r.Verdict != analysis.Inconclusive || !strings.Contains(r.Reason, out.Why)) {
				t.Errorf("%s, neighbour %d: %s, %q", name, i, r.Verdict, r.Reason)
			}
		}
		noted := strings.Contains(warningsOf(reports[0]), "the function f reads besides")
		if noted != (c.all != nil && c.all[0] == reader) {
			t.Errorf("%s: warnings %q", name, warningsOf(reports[0]))
		}
	}
}

func warningsOf(r analysis.Report) (all string) {
	for _, w := range r.Warnings {
		all += w.String() + "\n"
	}
	return all
}
