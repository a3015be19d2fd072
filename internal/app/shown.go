package app

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/dpwatch/dpwatch/internal/audit"
	"github.com/dpwatch/dpwatch/internal/withheld"
)

// shown is the latest status of an engine as pages show it. Several pages share it, because a status may have thousands of audits.
type shown struct {
	mu      sync.Mutex // guards all
	status  []byte     // of the auditor, which snapshot shows
	parsed  *Snapshot
	public  *Snapshot // parsed without values
	changes uint64    // of status
	// mayHold is whether an auditor has had log.values or log.sql set, so that its status may hold values.
	mayHold atomic.Bool
}

// version returns the number of statuses since the first call.
func (x *shown) version(e *auditedEngine) uint64 {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.look(e)
	return x.changes
}

func (x *shown) look(e *auditedEngine) {
	if now := e.supervisor.Status(); len(now) != len(x.status) || len(now) > 0 && &now[0] != &x.status[0] {
		x.status, x.parsed, x.public = now, nil, nil
		x.changes++
	}
}

// snapshot returns the status as a Snapshot, with the counters of the relay at the time at which the auditor sent its part. Before that, they are
// those of now. Without values, it has no text that may hold any: with log.values and log.sql, the auditor's status does.
func (x *shown) snapshot(e *auditedEngine, values bool) (*Snapshot, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.look(e)
	if kept := x.kept(values); kept != nil && x.status != nil {
		return kept, nil
	}
	text, err := e.statusJSON()
	if err != nil {
		return nil, err
	}
	s, err := newSnapshot(text)
	if err != nil {
		return nil, err
	}
	if values {
		x.parsed = s
		return s, nil
	}
	if x.mayHold.Load() {
		s.withhold()
	}
	x.public = s
	return s, nil
}

func (x *shown) kept(values bool) *Snapshot {
	if values {
		return x.parsed
	}
	return x.public
}

// withheldText replaces texts that may hold values.
const withheldText = "withheld: log.values or log.sql is set, so that this text may hold values; the role auditor sees it"

// withhold removes what may hold values of rows from the texts of a status.
func (s *Snapshot) withhold() {
	hide := func(text *string) {
		if *text != "" {
			*text = withheldText
		}
	}
	if s.auditor == nil {
		return
	}
	hide(&s.auditor.Shadow)
	hide(&s.auditor.Catalog)
	if len(s.auditor.Warnings) > 0 {
		s.auditor.Warnings = []string{withheldText}
	}
	if l := s.auditor.Ledger; l != nil {
		hide(&l.Trouble)
	}
	for i := range s.auditor.Audits {
		withholdEntry(&s.auditor.Audits[i], hide)
	}
	for i := range s.audits {
		withholdEntry(&s.audits[i].Entry, hide)
	}
}

func withholdEntry(a *audit.Entry, hide func(*string)) {
	hide(&a.Trouble)
	a.SQL = nil
	if a.Report == nil {
		return
	}
	r := *a.Report
	r.Event, r.Partitions, r.Warnings, r.ClopperPearson = nil, nil, nil, nil
	if f := r.Finding; f != nil {
		public := *f
		public.Line, public.Paragraph, public.What.Text, public.What.Parts = withheld.Public(withheldText), withheld.Public(withheldText), withheld.Public(withheldText), nil
		public.Causes = slices.Clone(f.Causes)
		for i := range public.Causes {
			public.Causes[i].Text = withheld.Public("")
		}
		r.Finding = &public
	}
	a.Report = &r
}
