package relay

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/dpwatch/dpwatch/config"
	"github.com/dpwatch/dpwatch/internal/app/records"
	"github.com/dpwatch/dpwatch/internal/app/setup"
	"github.com/dpwatch/dpwatch/internal/app/show"
	"github.com/dpwatch/dpwatch/internal/app/status"
	"github.com/dpwatch/dpwatch/internal/read"
)

// EngineNames returns the names of the engines.
func (r *Relay) EngineNames() []string {
	var names []string
	for _, e := range r.engines {
		names = append(names, e.name())
	}
	return names
}

// Version returns a number that changes when the status of an engine does.
func (r *Relay) Version() uint64 {
	var sum uint64
	for _, e := range r.engines {
		sum = 31*sum + e.shown.version(e)
	}
	return sum
}

// Snapshots returns the status of an engine, or of all with the name "". Without values, no text in it holds any.
func (r *Relay) Snapshots(engine string, values bool) ([]*status.Snapshot, error) {
	if engine != "" {
		e, err := r.engine(engine)
		if err != nil {
			return nil, err
		}
		s, err := e.shown.snapshot(e, values)
		return []*status.Snapshot{s}, err
	}
	var all []*status.Snapshot
	for _, e := range r.engines {
		s, err := e.shown.snapshot(e, values)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

// Overviews returns what the first page shows of an engine, or of all with the name "".
func (r *Relay) Overviews(engine string, values bool) ([]status.Overview, error) {
	snapshots, err := r.Snapshots(engine, values)
	if err != nil {
		return nil, err
	}
	var all []status.Overview
	for _, s := range snapshots {
		all = append(all, s.Overview())
	}
	return all, nil
}

// shownChanges is the number of changes on the first page.
const shownChanges = 20

// recent are the latest changes, which open pages share.
type recent struct {
	mu  sync.Mutex // guards the following, and keeps two pages from reading the ledger
	at  time.Time
	all []read.Change
	err error
}

// Changes returns the latest changes of the audits of an engine, or of all with the name "", from the ledgers. They may
// be some seconds old.
func (r *Relay) Changes(ctx context.Context, engine string) ([]read.Change, error) {
	r.recent.mu.Lock()
	defer r.recent.mu.Unlock()
	if time.Since(r.recent.at) > detailsAge {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), setup.LedgerTimeout) // the result is for other pages as well
		defer cancel()
		r.recent.all, r.recent.err = readChanges(ctx, *r.current.Load())
		r.recent.at = time.Now()
	}
	all := slices.DeleteFunc(slices.Clone(r.recent.all), func(c read.Change) bool { return engine != "" && c.Engine != engine })
	return all[:min(len(all), shownChanges)], r.recent.err
}

func readChanges(ctx context.Context, c config.Config) ([]read.Change, error) {
	var all []read.Change
	for _, one := range setup.Ledgers(c) {
		l, err := records.Open(ctx, one)
		if err != nil {
			return nil, err
		}
		changes, err := l.Changes(ctx, 5*shownChanges)
		l.Close()
		if err != nil {
			return nil, err
		}
		all = append(all, changes...)
	}
	slices.SortStableFunc(all, func(x, y read.Change) int { return y.At.Compare(x.At) })
	for i := range all {
		all[i].Summary = show.Printable(all[i].Summary)
	}
	return all, nil
}

// Jobs returns what the auditor of an engine does, or those of all with the name "".
func (r *Relay) Jobs(engine string, values bool) ([]status.Job, error) {
	snapshots, err := r.Snapshots(engine, values)
	if err != nil {
		return nil, err
	}
	var all []status.Job
	for _, s := range snapshots {
		j := s.Job()
		if e, err := r.engine(j.Engine); err == nil {
			j.Paused = e.supervisor.Paused() // the snapshot may be older
		}
		all = append(all, j)
	}
	return all, nil
}
