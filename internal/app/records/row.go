package records

import (
	"github.com/dpwatch/dpwatch/internal/audit/saved"
	"github.com/dpwatch/dpwatch/internal/ledger"
	"github.com/dpwatch/dpwatch/internal/read"
)

// WithEvidence returns an audit in the ledger with the reports of its evidence, which row has. note says why they are
// missing.
func WithEvidence(s *read.Stored, row *ledger.Audit) (a read.Audit, note string) {
	a = s.Audit()
	schemas, reports, worst, err := saved.Reports(row)
	switch {
	case err != nil:
		return a, "the evidence in the ledger cannot be read: " + err.Error()
	case len(reports) == 0:
		return a, "the ledger has no evidence of this audit"
	}
	a.Report, a.Neighbour = &reports[worst], schemas[worst]
	a.SetClaim(s)
	for i, r := range reports {
		a.Neighbours = append(a.Neighbours, read.Neighbour{Schema: schemas[i], Verdict: r.Verdict, Lower: r.EpsilonLower, Estimate: r.EpsilonEstimate})
	}
	return a, ""
}
