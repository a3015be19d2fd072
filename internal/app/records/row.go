package records

import (
	"math"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/audit/saved"
	"github.com/dpwatch/dpwatch/internal/ledger"
	"github.com/dpwatch/dpwatch/internal/read"
)

// Row returns the audit in the form of the status, with the reports of the evidence if row has them. note says why they
// are missing.
func (s *Audit) Row(row *ledger.Audit) (a read.Audit, note string) {
	report := analysis.Refused(analysis.Claim{Epsilon: math.NaN()}, 0, "")
	report.Verdict, report.Trials = analysis.Verdict(s.Verdict), analysis.Trials{D0: int(s.Trials), D1: int(s.Trials)}
	if s.Lower != nil {
		report.EpsilonLower = analysis.Float(*s.Lower)
	}
	a = read.Audit{
		ID: s.ID(), Key: s.Key, Group: s.Fingerprint, Summary: s.Summary, State: read.State(s.State), Verdict: s.Former().Verdict, Report: &report, ClaimRule: s.Rule, Destinations: s.Destinations,
		Seen: uint64(max(0, s.Executions)), FirstSeen: s.FirstSeen, LastSeen: s.LastSeen,
	}
	a.Standing = s.standing()
	if row != nil {
		schemas, reports, worst, latencies, err := saved.Reports(row)
		switch {
		case err != nil:
			note = "the evidence in the ledger cannot be read: " + err.Error()
		case len(reports) == 0:
			note = "the ledger has no evidence of this audit"
		default:
			report, a.Timing = reports[worst], latencies
			a.Neighbour = schemas[worst]
			for i, r := range reports {
				a.Neighbours = append(a.Neighbours, read.Neighbour{Schema: schemas[i], Verdict: r.Verdict, Lower: r.EpsilonLower, Estimate: r.EpsilonEstimate})
			}
		}
	}
	report.Claimed = analysis.Claimed{Epsilon: analysis.Float(math.NaN()), Source: s.Source}
	if s.Epsilon != nil && s.Delta != nil {
		report.Claimed.Epsilon, report.Claimed.Delta = analysis.Float(*s.Epsilon), *s.Delta
	}
	if v := a.Standing; v != nil && a.Neighbour == "" {
		a.Neighbour = v.Neighbour
	}
	return a, note
}
