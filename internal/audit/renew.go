package audit

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/rewrite"
)

// renewPause is the shortest time between two renewals for unknown names: clients that use names that do not exist must
// not make the auditor read catalogs continuously.
const renewPause = 10 * time.Second

// suspect requests a renewal if a refusal may be out of date: the table may have been created since.
func (a *Auditor) suspect(reason string) {
	switch rewrite.Reason(reason) {
	case rewrite.ReasonUnknownTable, rewrite.ReasonUnknownFunction, rewrite.ReasonNoCopy:
		a.askRenewal()
	}
}

// askRenewal requests a renewal before it is due.
func (a *Auditor) askRenewal() {
	select {
	case a.stale <- struct{}{}:
	default:
	}
}

// renew keeps the Rewriter up to date. The audits are analysed again in their next turns: see judge.
func (a *Auditor) renew(ctx context.Context) {
	inform := func() { a.inform.Do(func() { close(a.informed) }) }
	defer inform()
	for {
		_ = a.engineNow(ctx) // before the catalogs, which then have its functions
		began := time.Now()
		r, err := a.opt.Renew(ctx)
		if ctx.Err() != nil {
			return
		}
		changed := r != nil && a.recognizer.Use(r)
		a.reportCatalog(err)
		if err == nil {
			a.adoptCatalogs(began, changed)
		}
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
	before := a.catalogs.trouble
	a.catalogs.trouble = text
	a.mu.Unlock()
	if text != "" && text != before {
		a.opt.Logger.Warn("a catalog cannot be read: queries are rewritten with the last catalog read, and audits list their assumptions", zap.String("error", text))
	}
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
