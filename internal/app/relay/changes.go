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
	"github.com/dpwatch/dpwatch/internal/read"
)

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
func (ls *Ledgers) Changes(ctx context.Context, engine string) ([]read.Change, error) {
	ls.recent.mu.Lock()
	defer ls.recent.mu.Unlock()
	if time.Since(ls.recent.at) > detailsAge {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), setup.LedgerTimeout) // the result is for other pages as well
		defer cancel()
		ls.recent.all, ls.recent.err = readChanges(ctx, *ls.configuration.current.Load())
		ls.recent.at = time.Now()
	}
	all := slices.DeleteFunc(slices.Clone(ls.recent.all), func(c read.Change) bool { return engine != "" && c.Engine != engine })
	return all[:min(len(all), shownChanges)], ls.recent.err
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
