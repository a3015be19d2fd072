package status

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/dpwatch/dpwatch/internal/audit/view"
	"github.com/dpwatch/dpwatch/internal/read"
)

// audits returns the audits and records of a status, of which text is the JSON, in the order read.Recent.
func audits(s *view.Status, engine string, text json.RawMessage) ([]read.Audit, error) {
	var raw struct{ Audits, Records []json.RawMessage }
	if err := json.Unmarshal(text, &raw); err != nil {
		return nil, err
	}
	all := make([]read.Audit, 0, len(s.Audits)+len(s.Records))
	for i := range s.Audits {
		a := s.Audits[i]
		a.Raw = raw.Audits[i]
		all = append(all, a)
	}
	for i := range s.Records {
		a := s.Records[i].Audit()
		a.Raw = raw.Records[i]
		all = append(all, a)
	}
	for i := range all {
		all[i].EngineName = engine
	}
	slices.SortStableFunc(all, func(x, y read.Audit) int { return read.Compare(&x, &y) })
	return all, nil
}

func (s *Snapshot) violations() []read.Audit {
	i := slices.IndexFunc(s.Audits, func(a read.Audit) bool { return !a.Violation() })
	if i < 0 {
		return s.Audits
	}
	return s.Audits[:i]
}

// List returns the page of audits that a filter selects, violations first.
func (s *Snapshot) List(f read.Filter) (read.Page, error) {
	if s.engines != nil {
		return read.Page{}, s.errChoose()
	}
	if s.auditor == nil {
		return read.Page{}, errNoAuditor(s.address)
	}
	f.Sort = read.Recent
	return read.Select(s.Audits, f)
}

func errNoAuditor(address string) error {
	return fmt.Errorf("the auditor of %s has not sent its status yet: repeat the command, or see the log of dpwatch", address)
}

// Audit returns the audit whose id or key begins with prefix, of any engine.
func (s *Snapshot) Audit(prefix string) (read.Audit, error) {
	if s.auditor == nil && s.engines == nil {
		return read.Audit{}, errNoAuditor(s.address)
	}
	audits := s.Audits
	for _, one := range s.engines {
		audits = append(audits, one.Audits...)
	}
	var found []read.Audit
	for _, a := range audits {
		if prefix != "" && (strings.HasPrefix(a.Key, prefix) || strings.HasPrefix(a.ID, prefix)) {
			found = append(found, a)
		}
	}
	switch len(found) {
	case 0:
		return read.Audit{}, fmt.Errorf("%s has %w %q: dpwatch audits list lists them", s.address, read.ErrNoAudit, prefix)
	case 1:
		return found[0], nil
	}
	var ids []string
	for _, a := range found[:min(read.ShownIDs, len(found))] {
		ids = append(ids, cmp.Or(a.Key, a.ID))
	}
	return read.Audit{}, fmt.Errorf("%d audits begin with %q: give more digits; for example %s", len(found), prefix, strings.Join(ids, ", "))
}
