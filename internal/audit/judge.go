package audit

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/internal/audit/recognize"
	"github.com/dpwatch/dpwatch/internal/audit/view"
)

// judge ensures, before the trials of a turn, that the present catalogs allow the query of a job to be replayed, and
// that they are recent: they were read after the last change of the shadow database's functions and, if the query has
// names that no catalog has, after it was captured. same is false if its texts are others than before. The caller has
// the job's turn.
func (a *Auditor) judge(ctx context.Context, j *job) (same bool, err error) {
	if a.opt.Renew == nil {
		return true, nil
	}
	if _, err := a.env.Lately(ctx); err != nil {
		return false, err
	}
	if err := a.recent(j); err != nil {
		return false, err
	}
	if j.edition == a.recognizer.Edition() {
		return true, nil
	}
	return a.judgeAgain(j)
}

// recent returns an error, and requests a reading of the catalogs, if they are too old for the trials of a job.
func (a *Auditor) recent(j *job) error {
	var unknown bool
	var captured time.Time
	a.locked(func() { unknown, captured = j.plan.UnknownNames, j.admitted })
	return a.catalogs.Recent(unknown, captured)
}

// judgeAgain analyses the query of a job with the present catalogs. The error is an unjudgeable if they do not allow a
// replay. The caller has the job's turn.
func (a *Auditor) judgeAgain(j *job) (same bool, err error) {
	plan, edition, err := a.planAgain(j)
	if err != nil {
		return false, a.unjudged(err)
	}
	had := j.hasTexts()
	before := make([]view.SQLPair, len(j.worlds))
	a.locked(func() {
		for i := range j.worlds {
			before[i] = j.worlds[i].SQL
		}
		j.worlds = withoutTexts(j.worlds)
		j.setPlan(plan, edition)
	})
	if !had {
		return true, nil
	}
	if err := a.createTexts(j); err != nil {
		return false, a.unjudged(err)
	}
	same = true
	for i := range j.worlds {
		same = same && j.worlds[i].SQL == before[i]
	}
	return same, nil
}

// unjudged returns the error of a turn whose query cannot be rewritten: it waits if a catalog could not be read or the
// claim could not be evaluated, and ends the audit otherwise.
func (a *Auditor) unjudged(err error) error {
	if a.catalogs.Troubled() || recognize.ReasonOf(err) == recognize.SkippedUnevaluated {
		return err
	}
	return &unjudgeable{err}
}

// hold makes a job wait until the catalogs are read.
func (d *desk) hold(j *job, err error, took time.Duration) {
	j.trouble, j.held, j.ledgerAway = d.opt.say(err), true, false
	now := d.now
	j.NotBefore = now.Add(d.opt.RetryAfter)
	d.roster.Resize(&j.Audit, j.size())
	d.roster.Return(&j.Audit, took, now)
}

// adoptCatalogs lets the jobs go on that waited until all catalogs were read. changed reports that they are others than
// before: what was derived from those is dropped.
func (d *desk) adoptCatalogs(changed bool) {
	if changed {
		clear(d.away)
	}
	for _, j := range d.order {
		if j.held {
			j.held, j.NotBefore = false, time.Time{}
		}
	}
	d.do(wake{})
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
