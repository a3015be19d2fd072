package finding_test

import (
	"math"
	"testing"

	"github.com/dpwatch/dpwatch/internal/finding"
)

// TestSeverity: the severity of a violation follows from the estimate, from the bound without a finite one, and is the
// highest without any epsilon.
func TestSeverity(t *testing.T) {
	t.Parallel()
	scale := finding.Scale{{Least: 0, Severity: finding.Warning}, {Least: 0.5, Severity: finding.Error}, {Least: 2, Severity: finding.Critical}}
	none := math.NaN()
	for _, tc := range []struct {
		name                     string
		claimed, lower, estimate float64
		want                     finding.Severity
	}{
		{"the first bound is just above the claim", 0.1, 0.15, 2.4, finding.Critical},
		{"an estimate between", 1, 1.1, 1.6, finding.Error},
		{"no estimate", 1, 1.1, none, finding.Warning},
		{"an estimate below the bound", 1, 1.7, 1.2, finding.Error},
		{"no finite estimate", 1, 1.1, math.Inf(1), finding.Warning},
		{"no epsilon", 1, none, none, finding.Critical},
		{"below the table", 1, 0.9, none, finding.Info},
	} {
		if got := scale.Severity(tc.claimed, tc.lower, tc.estimate); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.name, got, tc.want)
		}
	}
	if finding.OfViolation(none, true) != finding.Deterministic || finding.OfViolation(1, false) != finding.Violation || finding.OfViolation(1, true) != finding.FloatingPoint {
		t.Error("the kind of a violation")
	}
	for _, k := range finding.Kinds() {
		if (k.Severity() == "") != (k.IsViolation() && k != finding.FloatingPoint) || !k.Severity().AtLeast("") || k.Passing() && k.IsViolation() {
			t.Errorf("%s: severity %q", k, k.Severity())
		}
	}
}
