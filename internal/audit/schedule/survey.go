package schedule

import (
	"math"
	"time"
)

// survey is which audits wait at a time, by one look at each.
type survey struct {
	// Those that may have a turn outside the watch share: their first one, or another one. Valid until the next survey.
	first, other []*line
	wait         time.Duration // until another one may; the maximum if there is none

	short, background *line         // that have the next turns in the watch share; nil = none may
	watchWait         time.Duration // until another one may; the maximum if there is none
}

// survey looks at all audits, and counts those that wait for a first turn by owner.
func (r *Roster) survey(now time.Time) *survey {
	for _, o := range r.owners {
		o.waiting = 0
	}
	s := &survey{first: r.first[:0], other: r.other[:0], wait: math.MaxInt64, watchWait: math.MaxInt64}
	r.every(func(a *line) bool {
		switch {
		case a.phase == Queued && a.Background:
			if !later(a.NotBefore, now, &s.watchWait) && (s.background == nil || byBackground(a, s.background) < 0) {
				s.background = a
			}
		case a.waits() && !a.Background:
			s.add(a, now)
		case a.phase == Decided && a.Watched:
			due := a.audit.watched.Add(r.limits.Watch.Every)
			if a.NotBefore.After(due) {
				due = a.NotBefore
			}
			if !later(due, now, &s.watchWait) && (s.short == nil || byWatch(a, s.short) < 0) {
				s.short = a
			}
		}
		return true
	})
	r.first, r.other = s.first, s.other
	return s
}

// add adds an audit that waits.
func (s *survey) add(a *line, now time.Time) {
	if later(a.NotBefore, now, &s.wait) {
		return
	}
	if !a.untried() {
		s.other = append(s.other, a)
		return
	}
	s.first = append(s.first, a)
	a.account.waiting++
}

// due returns how many audits may have a turn outside the watch share.
func (s *survey) due() int { return len(s.first) + len(s.other) }

// later reports whether a time has not come; it then lowers wait to how long that takes.
func later(at, now time.Time, wait *time.Duration) bool {
	if !at.After(now) {
		return false
	}
	*wait = min(*wait, at.Sub(now))
	return true
}
