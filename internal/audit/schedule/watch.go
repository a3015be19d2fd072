package schedule

import (
	"cmp"
	"math"
	"time"
)

// Watch bounds the turns of decided audits: short turns of Watched ones, and the turns of Background ones, which are
// repeated from the beginning.
//
// While other audits wait, these turns take Share of the time of all turns; otherwise, Share of the time. A Watched
// audit has a turn at most once per Every.
type Watch struct {
	Share float64 // from 0 to less than 1; 0 = no such turns
	Every time.Duration
}

const (
	// maxCredit bounds what of the watch share can be saved up.
	maxCredit = 5 * time.Second
	// expectedTurn is what a turn in the watch share is charged with when it begins, until its length is known. So at
	// most maxCredit/expectedTurn of them run at the same time, rounded up.
	expectedTurn = time.Second
)

// watching is the use of the watch share.
type watching struct {
	share      float64       // see Watch
	credit     time.Duration // not used yet; below 0 after a turn that took more
	quiet      time.Time     // until when the time without waiting audits is credited; zero = audits wait
	short      time.Duration // in turns of Watched audits
	background time.Duration // in turns of Background audits
}

// earn adds the share that belongs to a turn of an audit outside the watch share.
func (w *watching) earn(took time.Duration) {
	if w.share > 0 {
		w.add(time.Duration(float64(took) * w.share / (1 - w.share)))
	}
}

func (w *watching) add(d time.Duration) { w.credit = min(maxCredit, w.credit+d) }

// advance charges the watch share with a turn that begins.
func (w *watching) advance(a *Audit) {
	a.advance = expectedTurn
	w.credit -= a.advance
}

// refund takes the charge of advance back: the turn has ended.
func (w *watching) refund(a *Audit) {
	w.add(a.advance)
	a.advance = 0
}

// charge charges the watch share with a turn that has ended.
func (w *watching) charge(a *Audit, took time.Duration) {
	w.credit -= took
	if a.phase != Watching {
		w.background += took
		return
	}
	w.short += took
	a.account.watched += took
}

// nextWatch returns the audit that may have a turn in the watch share now, or nil and how long to wait for one if no
// other audit waits.
func (r *Roster) nextWatch(s *survey, now time.Time) (next *line, wait time.Duration) {
	share := r.watch.share
	if share <= 0 {
		return nil, math.MaxInt64
	}
	wait = s.watchWait
	if !r.watch.quiet.IsZero() {
		r.watch.add(time.Duration(float64(max(0, now.Sub(r.watch.quiet))) * share))
	}
	if r.watch.quiet = now; s.due() > 0 {
		r.watch.quiet = time.Time{}
	}
	if next = s.short; next == nil || s.background != nil && r.watch.background <= r.watch.short {
		next = s.background
	}
	if next != nil && r.watch.credit <= 0 {
		wait = min(wait, time.Duration(math.Ceil(float64(-r.watch.credit)/share)))
		return nil, max(wait, time.Millisecond)
	}
	return next, wait
}

// byWatch orders watched audits: users share the time in such turns, and of one user's the one that has waited longest
// has the next one.
func byWatch(a, b *line) int {
	return cmp.Or(cmp.Compare(a.account.watched, b.account.watched), a.audit.watched.Compare(b.audit.watched), cmp.Compare(a.audit.number, b.audit.number))
}

// byBackground orders audits that are repeated: one ends before the next begins.
func byBackground(a, b *line) int {
	return cmp.Or(boolCompare(b.turns > 0, a.turns > 0), bySince(a, b))
}

// Rest ends a turn of an audit that is Watching: it is Decided again.
func (r *Roster) Rest(a *Audit, took time.Duration, now time.Time) {
	r.watch.refund(a)
	r.watch.charge(a, took)
	a.phase, a.watched = Decided, now
}
