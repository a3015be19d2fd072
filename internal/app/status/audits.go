package status

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/dpwatch/dpwatch/internal/audit/view"
	"github.com/dpwatch/dpwatch/internal/read"
)

// audits returns the audits and records of a status.
func audits(s *view.Status) []read.Audit {
	all := slices.Clone(s.Audits)
	for i := range s.Records {
		all = append(all, s.Records[i].Audit())
	}
	slices.SortStableFunc(all, func(x, y read.Audit) int { return read.Compare(&x, &y) })
	return all
}

func (s *Snapshot) violations() []read.Audit {
	i := slices.IndexFunc(s.Audits, func(a read.Audit) bool { return !a.Violation() })
	if i < 0 {
		return s.Audits
	}
	return s.Audits[:i]
}

// List returns the audits that a filter selects, violations first.
func (s *Snapshot) List(f read.Filter) (read.Listing, error) {
	if s.engines != nil {
		return read.Listing{}, s.errChoose()
	}
	if s.auditor == nil {
		return read.Listing{}, errNoAuditor(s.address)
	}
	return read.List(s.Audits, f)
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
