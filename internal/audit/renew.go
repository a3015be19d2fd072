package audit

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/rewrite"
)

// renewPause is the shortest time between two renewals for unknown names: clients that use names that do not exist must not
// make the auditor read catalogs continuously.
const renewPause = 10 * time.Second

// suspect requests a renewal if a refusal may be out of date: the table may have been created since.
func (a *Auditor) suspect(reason string) {
	switch rewrite.Reason(reason) {
	case rewrite.ReasonUnknownTable, rewrite.ReasonUnknownFunction, rewrite.ReasonNoCopy:
		select {
		case a.stale <- struct{}{}:
		default:
		}
	}
}

// renew keeps the Rewriter up to date. Running audits keep their plan.
func (a *Auditor) renew(ctx context.Context) {
	inform := func() { a.inform.Do(func() { close(a.informed) }) }
	defer inform()
	for {
		r, err := a.opt.Renew(ctx)
		if ctx.Err() != nil {
			return
		}
		if r != nil {
			a.recognizer.Use(r)
		}
		a.reportCatalog(err)
		inform()
		if !a.pause(ctx) {
			return
		}
	}
}

// reportCatalog shows an error in the status, and logs it when it changes.
func (a *Auditor) reportCatalog(err error) {
	text := ""
	if err != nil {
		text = a.say(err)
	}
	a.mu.Lock()
	before := a.catalog
	a.catalog = text
	a.mu.Unlock()
	if text != "" && text != before {
		a.opt.Logger.Warn("a catalog cannot be read: queries are rewritten with the last catalog read, and audits list their assumptions", zap.String("error", text))
	}
}

// catalogUnread reports whether a catalog could not be read the last time: a query may be refused for that alone.
func (a *Auditor) catalogUnread() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.catalog != ""
}

// pause waits until the next renewal is due; it returns false if ctx is done.
func (a *Auditor) pause(ctx context.Context) bool {
	due := time.NewTimer(a.opt.RenewEvery)
	defer due.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-due.C:
		return true
	case <-time.After(min(renewPause, a.opt.RenewEvery)):
	}
	select {
	case <-ctx.Done():
		return false
	case <-due.C:
	case <-a.stale:
	}
	return true
}
