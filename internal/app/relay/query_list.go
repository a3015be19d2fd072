package relay

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/config"
	"github.com/dpwatch/dpwatch/internal/app/records"
	"github.com/dpwatch/dpwatch/internal/app/setup"
	"github.com/dpwatch/dpwatch/internal/app/show"
	"github.com/dpwatch/dpwatch/internal/ledger"
	"github.com/dpwatch/dpwatch/internal/read"
)

// QueryList is a page of the queries.
type QueryList struct {
	Rows  []ledger.Listed
	Total int // on all pages
}

// List returns a page of the queries of an engine, or of all: from the ledger, or from the auditors' memory if there is
// none.
func (r *Relay) List(ctx context.Context, o ledger.ListOptions) (QueryList, error) {
	c := *r.current.Load()
	if c.AllEngines()[0].LedgerDSN() == "" {
		return r.listRunning(o)
	}
	if o.Engine != "" {
		one, err := setup.LedgerEngine(c, o.Engine)
		if err != nil {
			return QueryList{}, RequestError{err}
		}
		return listStored(ctx, []config.Config{one}, o)
	}
	return listStored(ctx, setup.Ledgers(c), o)
}

// listStored reads a page from ledgers. Several ledgers are listed one after the other.
func listStored(ctx context.Context, all []config.Config, o ledger.ListOptions) (QueryList, error) {
	var list QueryList
	ctx, cancel := context.WithTimeout(ctx, setup.LedgerTimeout)
	defer cancel()
	for _, one := range all {
		l, err := records.Open(ctx, one)
		if err != nil {
			return list, err
		}
		rest := o
		rest.Offset, rest.Limit = max(0, o.Offset-list.Total), o.Limit-len(list.Rows)
		rows, total, err := l.List(ctx, rest)
		l.Close()
		if err != nil {
			return list, err
		}
		list.Rows, list.Total = append(list.Rows, rows...), list.Total+total
	}
	for i := range list.Rows {
		list.Rows[i].Summary = show.Printable(list.Rows[i].Summary)
		for k, d := range list.Rows[i].Destinations {
			list.Rows[i].Destinations[k] = show.Printable(d)
		}
	}
	return list, nil
}

// listRunning lists the audits in memory.
func (r *Relay) listRunning(o ledger.ListOptions) (QueryList, error) {
	snapshots, err := r.Snapshots(o.Engine, false)
	if err != nil {
		return QueryList{}, err
	}
	var all []ledger.Listed
	for _, s := range snapshots {
		for i := range s.Audits {
			a := &s.Audits[i]
			row := listed(a, s.Relay.Engine)
			text := strings.ToLower(o.Search)
			matches := strings.Contains(strings.ToLower(row.Summary), text) || strings.Contains(strings.ToLower(a.User), text) || strings.HasPrefix(row.Key, o.Search) || strings.HasPrefix(a.Group, o.Search)
			if matches && (o.Status == "" || o.Status == row.Status) {
				all = append(all, row)
			}
		}
	}
	if !sortListed(all, o) {
		return QueryList{}, ledger.ErrSort
	}
	first := min(o.Offset, len(all))
	return QueryList{all[first:min(len(all), first+o.Limit)], len(all)}, nil
}

func listed(a *read.Audit, engine string) ledger.Listed {
	r := a.Result()
	row := ledger.Listed{
		Key: a.Key, Engine: engine, Summary: show.Printable(a.Summary), Executions: int64(a.Seen), FirstSeen: a.FirstSeen, LastSeen: a.LastSeen, State: string(a.State),
		Verdict: string(r.Verdict), Trials: int64(r.Trials.D0), Lower: show.Finite(float64(r.EpsilonLower)), Epsilon: show.Finite(float64(r.Claimed.Epsilon)), Delta: &r.Claimed.Delta,
		Destinations: a.Destinations,
	}
	switch {
	case a.Violation():
		row.Status = string(a.Status())
	case r.Verdict == analysis.NoEvidence || r.Verdict == analysis.Inconclusive:
		row.Status = string(r.Verdict)
	default:
		row.Status = ledger.StatusRunning
	}
	return row
}

// sortListed sorts as the ledger does; false if it has no such order.
func sortListed(all []ledger.Listed, o ledger.ListOptions) bool {
	number := func(v *float64) float64 {
		if v == nil {
			return math.Inf(-1)
		}
		return *v
	}
	severity := map[string]int{ledger.StatusOpen: 2, ledger.StatusAccepted: 1}
	severest := func(x *ledger.Listed) float64 {
		if severity[x.Status] == 0 {
			return math.Inf(-1)
		}
		return number(x.Lower)
	}
	orders := map[string]func(x, y *ledger.Listed) int{
		"":           func(x, y *ledger.Listed) int { return severity[x.Status] - severity[y.Status] },
		"bound":      func(x, y *ledger.Listed) int { return cmp.Compare(number(x.Lower), number(y.Lower)) },
		"claim":      func(x, y *ledger.Listed) int { return cmp.Compare(number(x.Epsilon), number(y.Epsilon)) },
		"trials":     func(x, y *ledger.Listed) int { return cmp.Compare(x.Trials, y.Trials) },
		"executions": func(x, y *ledger.Listed) int { return cmp.Compare(x.Executions, y.Executions) },
		"last":       func(x, y *ledger.Listed) int { return x.LastSeen.Compare(y.LastSeen) },
		"first":      func(x, y *ledger.Listed) int { return x.FirstSeen.Compare(y.FirstSeen) },
		"summary":    func(x, y *ledger.Listed) int { return strings.Compare(x.Summary, y.Summary) },
	}
	order, known := orders[o.Sort]
	if !known {
		return false
	}
	slices.SortStableFunc(all, func(x, y ledger.Listed) int {
		by := order(&x, &y)
		if !o.Up {
			by = -by
		}
		return cmp.Or(by, cmp.Compare(severest(&y), severest(&x)), y.LastSeen.Compare(x.LastSeen), strings.Compare(x.Key, y.Key))
	})
	return true
}
