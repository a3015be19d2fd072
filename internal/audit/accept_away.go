package audit

import (
	"context"

	"github.com/dpwatch/dpwatch/internal/audit/recognize"
	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/ledger"
)

// recallAway reads, once for each acceptance, what the query calls whose audit is not in memory: it was evicted, or had
// no place after a restart. So another engine ends that acceptance, too. It is not known for a statement that the
// ledger does not have, or that cannot be rewritten any more.
func (a *Auditor) recallAway(ctx context.Context, store *ledger.Engine, all []ledger.Acceptance) error {
	for i := range all {
		key := all[i].Key
		a.mu.Lock()
		known := a.jobs[key] != nil || a.away[key] != nil
		a.mu.Unlock()
		if known || all[i].EngineEpoch == "" {
			continue
		}
		l, err := a.storedLife(ctx, store, key)
		if err != nil {
			return err
		}
		a.mu.Lock()
		a.away[key] = l
		a.mu.Unlock()
	}
	return nil
}

// storedLife returns a life with the calls of a stored audit's query, without them if they cannot be known. The error
// is that of the ledger.
func (a *Auditor) storedLife(ctx context.Context, store *ledger.Engine, key string) (*life, error) {
	l := &life{}
	row, found, err := store.Audits.Find(ctx, key)
	if err != nil || !found || row.Poisoned || row.Query.Unreadable != nil {
		return l, err
	}
	q, err := capture.DecodeBinary(row.Query.Statement)
	if err != nil {
		return l, nil //nolint:nilerr // it was captured by another version
	}
	plan, _, err := parseStored(ctx, a.recognizer, store, key, q)
	switch {
	case err != nil && recognize.ReasonOf(err) == recognize.SkippedOther: // an error of the ledger
		return nil, err
	case err != nil:
		return l, nil
	}
	if now, _ := identity(&a.opt, q, plan.Key); now == key {
		a.locked(func() { a.callsOf(l, plan) })
	}
	return l, nil
}
