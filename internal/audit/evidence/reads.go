package evidence

import (
	"strings"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/withheld"
)

// ReadsKnown reports whether SetReads was called for these trials, here or in the process that saved them.
func (s *observed) ReadsKnown() bool { return s.readsKnown }

// SetReads notes what replay.Reads could not verify, "" = trials read the copies of their world, and what trials read or
// may read besides them. It holds for all trials, before and after. What was noted for the trials of a stage stays so.
func (s *observed) SetReads(unverified string, beside []string) {
	s.readsKnown = true
	s.unverified = added(s.unverified, unverified)
	for _, what := range beside {
		s.beside = added(s.beside, what)
	}
}

// SetUnlike notes how the shadow database differs from production in what answers may depend on; "" = it does not, or is
// not compared.
func (s *observed) SetUnlike(how string) { s.unlike = how }

// added returns a list with one more entry, unless it has it.
func added(list, entry string) string {
	if strings.Contains(list, entry) {
		return list
	}
	return strings.TrimPrefix(list+"; "+entry, "; ")
}

// withReads adds to a report what is not known of what trials read, and of what they run on. Trials that read the same rows in all worlds never
// show a violation. So there is a conclusion only if the reads are those of the copies, or if it is only not known
// whether they are and the answers were seen to differ: if the bound is above 0. What trials read besides the copies may
// hide a leak also if the answers differ.
func (s *observed) withReads(r analysis.Report) analysis.Report {
	if s.unlike != "" {
		r.Warnings = append(r.Warnings, withheld.Sprintf("the shadow database is not like production: %s", s.unlike))
		if r.Verdict == analysis.NoEvidence {
			r.Reason += "; the shadow database is not like production, on which this may depend: " + s.unlike
		}
	}
	if s.unverified == "" && s.beside == "" {
		return r
	}
	why := strings.Trim(s.unverified+"; "+s.beside, "; ")
	r.Warnings = append(r.Warnings, withheld.Sprintf("not verified: trials read the copies of their world alone (%s)", why))
	switch {
	case r.Verdict != analysis.NoEvidence:
	case s.beside != "":
		r.Verdict = analysis.Inconclusive
		r.Reason = "trials read, or may read, what is the same in all worlds, so that a leak of it cannot show (" + why + "); list tables without personal data in privacy.public, and functions that read none in claims.safe_functions; otherwise: " + r.Reason
	case r.EpsilonLower > 0:
		r.Reason += "; not verified: trials read the copies of their world alone (" + why + "), but the answers on D0 and D1 differ"
	default:
		r.Verdict = analysis.Inconclusive
		r.Reason = "it cannot be verified that trials read the copies (" + why + "), and the answers on D0 and D1 show no difference; otherwise: " + r.Reason
	}
	return r
}
