package audit

import (
	"context"

	"github.com/dpwatch/dpwatch/internal/ledger"
)

// MeterNow compares the budgets with the answers in the ledger now.
func (a *Auditor) MeterNow(ctx context.Context) error { return a.metering.now(ctx) }

// InboxLen returns the number of queries in the inbox.
func (a *Auditor) InboxLen() int {
	n, _ := a.intake.inbox.Held()
	return n
}

// Turn runs a turn as Run does.
func (w *Worker) Turn(ctx context.Context, t *ledger.Turn) error { return w.turn(ctx, t) }
