package audit

import (
	"context"
	"time"

	"github.com/dpwatch/dpwatch/internal/ledger"
)

// askEvery is the interval at which a worker asks the ledger whether its turn must end soon, once the turn is long
// enough to end.
const askEvery = 500 * time.Millisecond

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
