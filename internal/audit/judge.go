package audit

import (
	"context"
	"errors"
	"time"

	"github.com/dpwatch/dpwatch/internal/audit/recognize"
	"github.com/dpwatch/dpwatch/internal/audit/view"
)

// catalogs is what is known of the catalogs with which statements are analysed.
type catalogs struct {
	trouble string    // why one could not be read the last time; "" = all were read
	read    time.Time // when the last reading of all began; zero = there was none
	// needed is when the engine was read that is not the one before: older catalogs may lack what a replay would call.
	needed time.Time
}

// unreadCatalogs is the error of a turn that waits until the catalogs are read again.
type unreadCatalogs struct{ error }

// judge ensures, before the trials of a turn, that the present catalogs allow the query of a job to be replayed, and
// that they are recent: they were read after the last change of the shadow database's functions and, if the query has
// names that no catalog has, after it was captured. same is false if its texts are others than before. The caller has
// the job's turn.
func (a *Auditor) judge(ctx context.Context, j *job) (same bool, err error) {
	if a.opt.Renew == nil {
		return true, nil
	}
	if err := a.readLately(ctx); err != nil {
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
	a.mu.Lock()
	defer a.mu.Unlock()
	c := &a.catalogs
	needed := c.needed
	if j.plan.UnknownNames && j.admitted.After(needed) {
		needed = j.admitted
	}
	if a.opt.Renew == nil || c.read.IsZero() || c.read.After(needed) {
		return nil
	}
	a.askRenewal()
	text := "the catalogs are read again first: functions may be newer than they are"
	if c.trouble != "" {
		text += " (" + c.trouble + ")"
	}
	return &unreadCatalogs{errors.New(text)}
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
			before[i], j.worlds[i].sql = j.worlds[i].sql, view.SQLPair{}
		}
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
		same = same && j.worlds[i].sql == before[i]
	}
	return same, nil
}

// unjudged returns the error of a turn whose query cannot be rewritten: it waits if a catalog could not be read or the
// claim could not be evaluated, and ends the audit otherwise.
func (a *Auditor) unjudged(err error) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.catalogs.trouble != "" || recognize.ReasonOf(err) == recognize.SkippedUnevaluated {
		return err
	}
	return &unjudgeable{err}
}

// hold makes a job wait until the catalogs are read. The caller holds Auditor.mu and has the job's turn.
func (a *Auditor) hold(j *job, err error, took time.Duration) {
	j.trouble, j.held, j.ledgerAway = a.say(err), true, false
	now := a.opt.Now()
	j.NotBefore = now.Add(a.opt.RetryAfter)
	a.roster.Resize(&j.Audit, j.size())
	a.roster.Return(&j.Audit, took, now)
}

// adoptCatalogs notes that all catalogs were read, and lets the jobs go on that waited for it. changed reports that
// they are others than before: what was derived from those is dropped.
func (a *Auditor) adoptCatalogs(began time.Time, changed bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.catalogs.read = began
	if changed {
		clear(a.away)
	}
	for _, j := range a.order {
		if j.held {
			j.held, j.NotBefore = false, time.Time{}
		}
	}
	a.wake()
}
