package status

import (
	"slices"

	"github.com/dpwatch/dpwatch/internal/audit/view"
	"github.com/dpwatch/dpwatch/internal/withheld"
)

// withheldText replaces texts that may hold values.
const withheldText = "withheld: log.values or log.sql is set, so that this text may hold values; the role auditor sees it"

// Withhold removes what may hold values of rows from the texts of a status.
func (s *Snapshot) Withhold() {
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
	if a := s.auditor.Alerts; a != nil {
		hide(&a.Trouble)
	}
	for i := range s.auditor.Audits {
		withholdEntry(&s.auditor.Audits[i], hide)
	}
	for i := range s.Audits {
		withholdEntry(&s.Audits[i].Entry, hide)
	}
}

func withholdEntry(a *view.Entry, hide func(*string)) {
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
