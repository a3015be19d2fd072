package audit

import (
	"context"
	"time"

	"github.com/dpwatch/dpwatch/internal/ledger"
)

// askEvery is the interval at which a worker asks the ledger whether its turn must end soon, once the turn is long
// enough to end.
const askEvery = 500 * time.Millisecond

// mustHurry returns the turns of workers that must end soon and whose workers do not know it.
func (a *Auditor) mustHurry() (ids []int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.roster.Pressing(a.opt.Now()) {
		return nil
	}
	for id, j := range a.remote.out {
		if j.given != nil && !j.given.hurried {
			ids = append(ids, id)
		}
	}
	return ids
}

// hurry asks workers to end their turns soon if a new query waits for its first turn, as turns in this process do.
// Turns with a free worker were handed out before.
func (a *Auditor) hurry(ctx context.Context, engine *ledger.Engine) error {
	ids := a.mustHurry()
	if ids == nil {
		return nil
	}
	if err := engine.Turns.Hurry(ctx, ids); err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, id := range ids {
		if j := a.remote.out[id]; j != nil && j.given != nil {
			j.given.hurried = true
		}
	}
	return nil
}

// hurriedBy returns a function for the rounds of a turn in a worker: it reports whether the auditor wants the turn to
// end soon, or the turn is outdated, which it asks the ledger every askEvery. Without an answer the turn goes on.
func hurriedBy(ctx context.Context, t *ledger.Turn, now func() time.Time) func() bool {
	yes, asked := false, time.Time{}
	return func() bool {
		if !yes && now().Sub(asked) >= askEvery {
			attempt, cancel := context.WithTimeout(ctx, 10*time.Second)
			yes, _ = t.Hurried(attempt) // true with ErrTurnLost
			cancel()
			asked = now()
		}
		return yes
	}
}
