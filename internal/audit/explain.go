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

// Figures are those of the worst neighbour of an audit in the ledger.
type Figures struct {
	analysis.Figures
	Threshold float64 // log-wealth at which the audit reports a violation: depends on audit.error_rate
	Seed      uint64  // of the order of the trials
}

// StoredFigures returns the figures of an audit in the ledger; without evidence they are empty.
func StoredFigures(row *ledger.Audit) (Figures, error) {
	p, e, err := storedEvidence(row)
	if e == nil {
		return Figures{}, err
	}
	worst, _ := e.Worst()
	return Figures{e.Audit(worst).Figures(), p.Threshold, p.Seed}, nil
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
