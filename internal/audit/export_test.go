package audit

import "context"

// MeterNow compares the budgets with the answers in the ledger now.
func (a *Auditor) MeterNow(ctx context.Context) error { return a.meterNow(ctx) }

// InboxLen returns the number of queries in the inbox.
func (a *Auditor) InboxLen() int {
	n, _ := a.inbox.held()
	return n
}
