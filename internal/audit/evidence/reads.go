package evidence

import (
	"strings"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/withheld"
)

// ReadsKnown reports whether SetReads was called for these trials, here or in the process that saved them.
func (s *observed) ReadsKnown() bool { return s.readsKnown }

// SetReads notes what replay.Reads could not verify; "" = trials read the copies of their world alone. It holds for all
// trials, before and after. What was not verified for the trials of a stage stays so.
func (s *observed) SetReads(unverified string) {
	if s.readsKnown = true; !strings.Contains(s.unverified, unverified) {
		s.unverified = strings.TrimPrefix(s.unverified+"; "+unverified, "; ")
	}
}

// withReads adds to a report what is not known of what trials read. Trials that read the same rows in all worlds never
// show a violation. So there is a conclusion only if answers were seen to differ: if the bound is above 0.
func (s *observed) withReads(r analysis.Report) analysis.Report {
	if s.unverified == "" {
		return r
	}
	r.Warnings = append(r.Warnings, withheld.Sprintf("not verified: trials read the copies of their world alone (%s)", s.unverified))
	switch {
	case r.Verdict != analysis.NoEvidence:
	case r.EpsilonLower > 0:
		r.Reason += "; not verified: trials read the copies of their world alone (" + s.unverified + "), but the answers on D0 and D1 differ"
	default:
		r.Verdict = analysis.Inconclusive
		r.Reason = "it cannot be verified that trials read the copies (" + s.unverified + "), and the answers on D0 and D1 show no difference; otherwise: " + r.Reason
	}
	return r
}
