package demo

import (
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/analysis"
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
