package records

import (
	"testing"

	"github.com/dpwatch/dpwatch/internal/app/status"
	"github.com/dpwatch/dpwatch/internal/audit/keep"
	"github.com/dpwatch/dpwatch/internal/audit/recognize"
	"github.com/dpwatch/dpwatch/internal/audit/schedule"
	"github.com/dpwatch/dpwatch/proxy"
	"github.com/dpwatch/dpwatch/rewrite/reasons"
)

// Every reason for which a statement is not audited has a class, and what to do if that may be a DP query.
func TestReasonsOfCoverage(t *testing.T) {
	t.Parallel()
	names := []string{"backlog", "internal_error", "other", recognize.SkippedUnevaluated, ReasonQueueFull, ReasonAuditorEnded, ReasonSetAside, keep.NotRecorded}
	for _, r := range reasons.All() {
		names = append(names, string(r))
	}
	for _, r := range schedule.Refusals() {
		names = append(names, string(r))
	}
	relay := status.SkippedStatements(proxy.Stats{})
	for r := range relay {
		names = append(names, r)
		if c := classOfReason(r); c != classLost && c != classOther {
			t.Errorf("%s has class %s: the relay refuses nothing", r, c)
		}
	}
	for _, r := range names {
		if c := classOfReason(r); c != classOther && remedies()[r] == "" {
			t.Errorf("%s (%s) has no remedy", r, c)
		}
	}
	for r := range remedies() { // a reason that was renamed
		if c := classOfReason(r); c == classOther {
			t.Errorf("%s is no DP query, but has a remedy", r)
		}
	}
}
