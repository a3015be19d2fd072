package demo

import (
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/analysis/diagnosis"
	"github.com/dpwatch/dpwatch/internal/withheld"
)

// A query with a finding has two lines, its figures and the finding; the others have one.
func TestTableHasAFindingBelowItsQuery(t *testing.T) {
	t.Parallel()
	found := &analysis.Report{Finding: &analysis.Finding{Line: withheld.Public("epsilon is at least 2 (claim 1): what")}}
	r := Result{Rows: []Line{
		{Name: "first", Found: "no_evidence", Report: &analysis.Report{}, AsWanted: true},
		{Name: "second", Found: "violation", Report: found, AsWanted: true},
		{Name: "third", Found: notAudited, AsWanted: true},
	}}
	lines := strings.Split(r.String(), "\n")
	for i, prefix := range []string{"QUERY", "first ", "second ", "    epsilon is at least 2 (claim 1): what", "third ", ""} {
		if !strings.HasPrefix(lines[i], prefix) || prefix == "" && lines[i] != "" {
			t.Errorf("line %d is %q, want %q", i, lines[i], prefix)
		}
	}
}

// A verdict is one line of at most 80 columns, and says what was found, whatever the names and figures are.
func TestVerdictLines(t *testing.T) {
	t.Parallel()
	report := func(v analysis.Verdict, lower float64, code diagnosis.Code) *analysis.Report {
		pairs := 100
		r := &analysis.Report{Verdict: v, EpsilonLower: analysis.Float(lower), DetectedAt: &pairs, Claimed: analysis.Claimed{Epsilon: 1}}
		if code != "" {
			r.Finding = &analysis.Finding{Causes: []diagnosis.Cause{{Code: code}}}
		}
		return r
	}
	for _, c := range []struct {
		line Line
		want string
	}{
		{Line{Name: "half", AsWanted: true, Report: report(analysis.Violation, 1.0001, diagnosis.NoiseScale)}, "  x  half                     1      > 1      too little noise for one person"},
		{Line{Name: "group", AsWanted: true, Report: report(analysis.Violation, 2.529, diagnosis.PartitionSelection)}, "  x  group                    1      >= 2.52  a group exists for one person"},
		{Line{Name: "honest", AsWanted: true, Report: report(analysis.NoEvidence, .2037, "")}, "  ok honest                   1      >= 0.203 none found (not a proof)"},
		{Line{Name: "open", Planted: "violation", Report: report(analysis.Inconclusive, 0, "")}, "  !! open                     1      -        not as planted: violation"},
	} {
		if got := c.line.verdict(false); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
	for _, code := range diagnosis.Codes() {
		line := Line{Name: strings.Repeat("n", 24), AsWanted: true, Report: report(analysis.Violation, 12.345, code)}
		if text := []rune(line.verdict(false)); len(text) > columns || strings.HasSuffix(string(text), "…") || reasons[code] == "" {
			t.Errorf("%s: %q", code, string(text))
		}
		if text := line.verdict(true); !strings.Contains(text, "\x1b[31mx \x1b[0m") {
			t.Errorf("without colours: %q", text)
		}
	}
}
