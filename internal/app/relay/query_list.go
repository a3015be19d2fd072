package relay

import (
	"context"

	"github.com/dpwatch/dpwatch/config"
	"github.com/dpwatch/dpwatch/internal/app/records"
	"github.com/dpwatch/dpwatch/internal/app/setup"
	"github.com/dpwatch/dpwatch/internal/read"
)

// List returns a page of the queries of an engine, or of all: from the ledger, or from the auditors' memory if there is
// none.
func (qs *Queries) List(ctx context.Context, f read.Filter) (read.Page, error) {
	c := *qs.configuration.current.Load()
	if c.AllEngines()[0].LedgerDSN() == "" {
		return qs.listRunning(f)
	}
	if f.Engine != "" {
		one, err := setup.LedgerEngine(c, f.Engine)
		if err != nil {
			return read.Page{}, RequestError{err}
		}
		return listStored(ctx, []config.Config{one}, f)
	}
	return listStored(ctx, setup.Ledgers(c), f)
}

// listStored reads a page from ledgers. Several ledgers are listed one after the other.
func listStored(ctx context.Context, all []config.Config, f read.Filter) (list read.Page, err error) {
	ctx, cancel := context.WithTimeout(ctx, setup.LedgerTimeout)
	defer cancel()
	for _, one := range all {
		l, err := records.Open(ctx, one)
		if err != nil {
			return list, err
		}
		rest, left := f, f.Limit-len(list.Audits)
		rest.Offset, rest.Limit = max(0, f.Offset-list.Total), max(1, left) // 0 is no limit, and Total is needed
		page, err := l.List(ctx, rest)
		l.Close()
		if err != nil {
			return list, err
		}
		list.Audits, list.Total = append(list.Audits, page.Audits[:min(left, len(page.Audits))]...), list.Total+page.Total
	}
	return list, nil
}

// listRunning lists the audits in memory.
func (qs *Queries) listRunning(f read.Filter) (read.Page, error) {
	snapshots, err := qs.engines.Snapshots(f.Engine, false)
	if err != nil {
		return read.Page{}, err
	}
	var all []read.Audit
	for _, s := range snapshots {
		all = append(all, s.Audits...)
	}
	return read.Select(all, f)
}
