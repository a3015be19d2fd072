package status

import (
	"github.com/dpwatch/dpwatch/internal/app/show"
	"github.com/dpwatch/dpwatch/internal/audit/view"
	"github.com/dpwatch/dpwatch/internal/read"
)

// Overview is what the first page shows of one engine.
type Overview struct {
	Engine, Version string
	Parts           []Part       // is it working
	Found           []read.Audit // violations, the worst first
	Audits, Decided int          // in memory
	Sessions        int64
	Queries         float64           // distinct DP queries, estimated
	Audited         *float64          // share of Queries whose audit has or had trials; nil = not known
	Restoring       bool              // the ledger has audits that are not known yet
	Alerts          *view.AlertsState // nil = not known
}

// Open returns the number of violations that are not accepted.
func (o *Overview) Open() (n int) {
	for i := range o.Found {
		if o.Found[i].Accepted == nil {
			n++
		}
	}
	return n
}

// Overview returns what the first page shows of the engine.
func (s *Snapshot) Overview() Overview {
	o := Overview{Engine: s.Relay.Engine, Version: s.Relay.Version, Parts: s.parts(), Sessions: int64(s.Relay.Proxy.OpenSessions)}
	for i := range o.Parts {
		o.Parts[i].Text = show.Printable(o.Parts[i].Text)
	}
	if a := s.auditor; a != nil {
		o.Audits, o.Queries, o.Audited, o.Alerts = len(a.Audits), a.Coverage.Queries, a.Coverage.AuditedQueries, a.Alerts
		o.Restoring = a.Withheld() != ""
	}
	for i := range s.Audits {
		a := &s.Audits[i]
		if a.Report != nil && a.Report.Verdict != "" {
			o.Decided++
		}
	}
	worst, _ := read.Select(s.violations(), read.Filter{Sort: read.ByExcess}) // there is such an order
	o.Found = worst.Audits
	return o
}
