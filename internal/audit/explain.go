package audit

import (
	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/audit/evidence"
	"github.com/dpwatch/dpwatch/internal/audit/timing"
	"github.com/dpwatch/dpwatch/internal/ledger"
)

// StoredReports returns the neighbours of an audit in the ledger with their reports, which of them is the worst, and the comparison of latencies, without
// an Auditor. There are none if the audit has no evidence. The claim's source is set by the caller.
func StoredReports(row *ledger.Audit) (neighbours []string, reports []analysis.Report, worst int, latencies *timing.Report, err error) {
	p, e, err := storedEvidence(row)
	if e == nil {
		return nil, nil, 0, nil, err
	}
	worst, reports = e.Worst()
	p.restoreProfile(e, worst, &reports[worst])
	e.Audit(worst).AddProfile(&reports[worst])
	return p.Neighbours, reports, worst, p.Life.Timing, nil
}

// StoredFigures returns the figures of the worst neighbour of an audit in the ledger, and the log-wealth at which the audit reports a violation, which depends on
// audit.error_rate; there are none if the audit has no evidence.
func StoredFigures(row *ledger.Audit) (f analysis.Figures, threshold float64, err error) {
	p, e, err := storedEvidence(row)
	if e == nil {
		return f, 0, err
	}
	worst, _ := e.Worst()
	return e.Audit(worst).Figures(), p.Threshold, nil
}

// storedEvidence decodes the evidence of an audit in the ledger; nil = none.
func storedEvidence(row *ledger.Audit) (*progress, *evidence.Evidence, error) {
	if row.Progress == nil {
		return nil, nil, nil
	}
	p, err := decodeProgress(row)
	if err != nil || len(p.Evidence) == 0 {
		return nil, nil, err
	}
	e := new(evidence.Evidence)
	if err := e.UnmarshalBinary(p.Evidence); err != nil {
		return nil, nil, err
	}
	if e.Neighbours() != len(p.Neighbours) {
		return nil, nil, errDamaged
	}
	return p, e, nil
}
