package audit

import (
	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/audit/evidence"
	"github.com/dpwatch/dpwatch/internal/ledger"
)

// StoredReports returns the neighbours of an audit in the ledger with their reports, and which of them is the worst, without an Auditor. There are none
// if the audit has no evidence. The claim's source is set by the caller.
func StoredReports(row *ledger.Audit) (neighbours []string, reports []analysis.Report, worst int, err error) {
	if row.Progress == nil {
		return nil, nil, 0, nil
	}
	p, err := decodeProgress(row)
	if err != nil || len(p.Evidence) == 0 {
		return nil, nil, 0, err
	}
	e := new(evidence.Evidence)
	if err := e.UnmarshalBinary(p.Evidence); err != nil {
		return nil, nil, 0, err
	}
	if e.Neighbours() != len(p.Neighbours) {
		return nil, nil, 0, errDamaged
	}
	worst, reports = e.Worst()
	p.restoreProfile(e, worst, &reports[worst])
	e.Audit(worst).AddProfile(&reports[worst])
	return p.Neighbours, reports, worst, nil
}
