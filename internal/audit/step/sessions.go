package step

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/dpwatch/dpwatch/replay"
)

// Bounds of what Slots keep between the turns of audits: the number of states of hoisting, the number of replays
// that rest with open sessions and the tables of a hoisted query, and the time of each.
const (
	maxSessions = 512
	maxResting  = 8
	maxRest     = 30 * time.Second
)

// sessions holds what steps can make again but rather do not.
type sessions struct {
	mu     sync.Mutex // guards the fields below
	all    []*session // the one that was used longest ago first
	closed bool
}

// session is the state of hoisting of one audit since its evidence began in one environment, and the replay that rests
// between two turns. A turn that has it has it alone.
type session struct {
	key            string
	beginning      int
	copies, engine string

	hoist *replay.Hoisting // nil = trials run the whole query
	run   Trials           // nil = none rests
	timer *time.Timer
}

// of reports whether a session is one of a turn's audit in its environment, for its evidence.
func (s *session) of(a *Audit) bool {
	return s.copies == a.Copies && s.engine == a.Engine && s.beginning == a.Beginning
}

// take removes and returns the session of a turn's audit, or returns a new one.
func (x *sessions) take(a *Audit, hoisting func(string) *replay.Hoisting) *session {
	s := x.remove(a.Key)
	if s != nil && !s.of(a) {
		s.close()
		s = nil
	}
	if s == nil {
		s = &session{key: a.Key, beginning: a.Beginning, copies: a.Copies, engine: a.Engine}
		if hoisting != nil {
			s.hoist = hoisting(a.SQL)
		}
	}
	return s
}

// remove removes the session of an audit; nil if there is none.
func (x *sessions) remove(key string) *session {
	x.mu.Lock()
	defer x.mu.Unlock()
	i := slices.IndexFunc(x.all, func(s *session) bool { return s.key == key })
	if i < 0 {
		return nil
	}
	s := x.all[i]
	x.all = slices.Delete(x.all, i, i+1)
	return s
}

// wake returns the replay that rests; nil if there is none.
func (s *session) wake() Trials {
	run := s.run
	if s.run = nil; s.timer != nil {
		s.timer.Stop()
	}
	return run
}

// close ends the replay that rests, if there is one.
func (s *session) close() {
	if run := s.wake(); run != nil {
		run.Close()
	}
}

// rest keeps a session for the next turn, and its replay, unless that is nil.
func (x *sessions) rest(s *session, run Trials, recovered func(where string, r any)) {
	if s.run = run; s.hoist == nil {
		return
	}
	x.mu.Lock()
	if x.closed {
		x.mu.Unlock()
		s.close()
		return
	}
	x.all = append(x.all, s)
	var old []Trials
	if run != nil {
		s.timer = time.AfterFunc(maxRest, func() {
			defer func() {
				if r := recover(); r != nil {
					recovered("close a replay that rests", r)
				}
			}()
			x.end(s, run)
		})
	}
	if resting := x.resting(); len(resting) > maxResting {
		old = append(old, resting[0].wake())
	}
	if len(x.all) > maxSessions {
		if run := x.all[0].wake(); run != nil {
			old = append(old, run)
		}
		x.all = slices.Delete(x.all, 0, 1)
	}
	x.mu.Unlock()
	for _, run := range old { // without the lock: it waits for a server
		run.Close()
	}
}

// resting returns the sessions with a replay. The caller holds the lock.
func (x *sessions) resting() (all []*session) {
	for _, s := range x.all {
		if s.run != nil {
			all = append(all, s)
		}
	}
	return all
}

// end closes a replay if it still rests.
func (x *sessions) end(s *session, run Trials) {
	x.mu.Lock()
	there := slices.Contains(x.all, s) && s.run == run // a turn that has the session is using it
	if there {
		s.run = nil
	}
	x.mu.Unlock()
	if there {
		run.Close()
	}
}

// closeAll closes all replays that rest, and forgets the sessions if forget is set.
func (x *sessions) closeAll(forget bool) {
	x.mu.Lock()
	var runs []Trials
	for _, s := range x.resting() {
		runs = append(runs, s.wake())
	}
	if forget {
		x.all = nil
	}
	x.mu.Unlock()
	for _, run := range runs {
		run.Close()
	}
}

// Resting returns how many replays rest between two turns of their audits.
func (s *Slots) Resting() int {
	s.sessions.mu.Lock()
	defer s.sessions.mu.Unlock()
	return len(s.sessions.resting())
}

// Clear forgets what was kept between turns: it was computed from copies, or by functions, that are no longer there.
func (s *Slots) Clear() { s.sessions.closeAll(true) }

// Drop forgets what was kept of one audit.
func (s *Slots) Drop(key string) {
	if kept := s.sessions.remove(key); kept != nil {
		kept.close()
	}
}

// CloseResting closes the replays that rest while held returns true, and all for good when ctx is done.
func (s *Slots) CloseResting(ctx context.Context, held func() bool) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			s.sessions.mu.Lock()
			s.sessions.closed = true
			s.sessions.mu.Unlock()
			s.sessions.closeAll(true)
			return
		case <-tick.C:
			if held() {
				s.sessions.closeAll(false)
			}
		}
	}
}
