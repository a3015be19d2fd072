package read

import (
	"errors"
	"slices"
	"strings"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/finding"
)

// The statuses of audits in a list.
const (
	StatusOpen         = string(finding.Open)
	StatusAccepted     = string(finding.Accepted)
	StatusNoEvidence   = string(analysis.NoEvidence)   // decided
	StatusInconclusive = string(analysis.Inconclusive) // decided
	StatusRunning      = "running"                     // an audit without a verdict
	StatusUntried      = "untried"                     // a query whose audit has not begun
)

// ListStatus returns the status of the audit in a list. SQL has the same words: see internal/ledger/list.go.
func (a *Audit) ListStatus() string {
	switch {
	case a.Violation():
		return string(a.Status())
	case a.State == "":
		return StatusUntried
	case a.Report != nil && (a.Report.Verdict == analysis.NoEvidence || a.Report.Verdict == analysis.Inconclusive):
		return string(a.Report.Verdict)
	}
	return StatusRunning
}

// Filter selects a page of audits. The ledger selects in SQL by the same rules; it has the orders whose names a page
// offers, and no State, Verdict and Cursor.
type Filter struct {
	Engine         string // the engine's name; "" = all
	Search         string // part of the summary or of a user's name, or the beginning of a key or fingerprint; "" = all
	Status         string // see ListStatus; "" = any
	State, Verdict string // "" = any
	Sort           string // the name of an order
	Up             bool   // the smallest first; audits without a value are last in both directions
	Offset         int    // audits before the page
	Cursor         string // Page.Next of the page before, in the order Recent and in place of Offset; "" = the first page
	Limit          int    // 0 = no limit
}

// Page is a part of a list of audits. Its JSON form is a contract with scripts.
type Page struct {
	Audits []Audit
	Total  int    // audits on all pages; with a cursor, on this one and those after it
	Left   int    // on the pages after this one
	Next   string // cursor of the next page in the order Recent; "" = this is the last one
}

// ErrSort means that a list has no such order.
var ErrSort = errors.New("a list of audits cannot be sorted like this")

// Select returns the page that a filter selects. It does not change the order of all.
func Select(all []Audit, f Filter) (Page, error) {
	compare, known := f.order()
	if !known {
		return Page{}, ErrSort
	}
	var after *position
	if f.Cursor != "" {
		p, err := parseCursor(f.Cursor)
		if err != nil {
			return Page{}, err
		}
		after = &p
	}
	var chosen []*Audit
	for i := range all {
		if a := &all[i]; f.selects(a) && (after == nil || a.position().compare(*after) > 0) {
			chosen = append(chosen, a)
		}
	}
	slices.SortStableFunc(chosen, compare)
	p := Page{Total: len(chosen)}
	chosen = chosen[min(max(0, f.Offset), len(chosen)):]
	if f.Limit > 0 && len(chosen) > f.Limit {
		p.Left = len(chosen) - f.Limit
		chosen = chosen[:f.Limit]
		p.Next = chosen[f.Limit-1].position().cursor()
	}
	for _, a := range chosen {
		p.Audits = append(p.Audits, *a)
	}
	return p, nil
}

// selects reports whether the audit is on a page of the list.
func (f *Filter) selects(a *Audit) bool {
	return (f.Engine == "" || f.Engine == a.EngineName) &&
		(f.State == "" || f.State == string(a.State)) && (f.Verdict == "" || f.Verdict == a.Verdict) &&
		(f.Status == "" || f.Status == a.ListStatus()) && (f.Search == "" || f.finds(a))
}

func (f *Filter) finds(a *Audit) bool {
	text := strings.ToLower(f.Search)
	has := func(s string) bool { return strings.Contains(strings.ToLower(s), text) }
	return has(a.Summary) || has(a.User) || strings.HasPrefix(a.Key, f.Search) || strings.HasPrefix(a.Group, f.Search)
}

// FilterStates returns the states that Filter accepts.
func FilterStates() []string {
	var out []string
	for _, s := range append(States(), Evicted) {
		out = append(out, string(s))
	}
	return out
}

// Verdicts returns the verdicts that Filter accepts.
func Verdicts() []string {
	return []string{string(analysis.Violation), string(analysis.NoEvidence), string(analysis.Inconclusive)}
}

// ShownIDs is the number of ids that an error lists.
const ShownIDs = 5

// ErrNoAudit is wrapped by the error for an id or key that no audit has.
var ErrNoAudit = errors.New("no audit")
