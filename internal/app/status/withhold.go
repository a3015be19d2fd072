package status

import (
	"encoding/json"
	"slices"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/audit/view"
	"github.com/dpwatch/dpwatch/internal/read"
	"github.com/dpwatch/dpwatch/internal/withheld"
)

// withheldText replaces texts that may hold values.
const withheldText = "withheld: log.reveal is not none, so that this text may hold values; the role auditor sees it"

// Withhold returns the status of an auditor, a view.Status as JSON, without the texts that may hold values of rows, and
// without statements.
func Withhold(text []byte) ([]byte, error) {
	var s view.Status
	if err := json.Unmarshal(text, &s); err != nil {
		return nil, err
	}
	withholdStatus(&s)
	return json.Marshal(&s)
}

func withholdStatus(s *view.Status) {
	hide := func(text *string) {
		if *text != "" {
			*text = withheldText
		}
	}
	hide(&s.Shadow)
	hide(&s.Catalog)
	if len(s.Warnings) > 0 {
		s.Warnings = []string{withheldText}
	}
	if p := s.Production; p != nil {
		shown := *p
		if hide(&shown.Why); len(p.Differences) > 0 {
			shown.Differences = []string{withheldText}
		}
		s.Production = &shown
	}
	if s.Ledger != nil {
		hide(&s.Ledger.Trouble)
	}
	if s.Alerts != nil {
		hide(&s.Alerts.Trouble)
	}
	for i := range s.Audits {
		withholdEntry(&s.Audits[i], hide)
	}
}

func withholdEntry(a *read.Audit, hide func(*string)) {
	troubled := a.Trouble != ""
	hide(&a.Trouble)
	a.SQL = nil
	if a.Watch != nil {
		hide(&a.Watch.Trouble)
	}
	if a.Report == nil {
		return
	}
	r := *a.Report
	if troubled || r.Verdict == analysis.Inconclusive { // the reason may quote the trouble
		hide(&r.Reason)
	}
	r.Event, r.Partitions, r.Warnings, r.ClopperPearson = nil, nil, nil, nil
	if c := r.Control; c != nil {
		public := *c
		public.Event, r.Control = nil, &public
	}
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
