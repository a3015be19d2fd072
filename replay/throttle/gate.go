// Package throttle throttles replays to the load on the shadow database that its operator allows.
//
// It owns a Gate, which every session passes before it runs trials: a number of sessions or a share of the time, hours
// of the day, a guard on the replication lag, and a pause switch. It has no information about queries or results. In:
// the limits of an operator. Out: when trials may run, and how many.
package throttle

import (
	"context"
	"sync"
	"time"
)

// Options sets the limits. The zero Options set none.
type Options struct {
	Sessions int // that run trials at the same time; 0 = no limit
	// Share is the part of the time in which a single session runs trials, if it is above 0 and below 1; Sessions is
	// then ignored.
	Share float64
	// Default describes, for the status, the limits that hold because the operator set none, and the reason.
	Default string
	Windows []Window // when replays may run; none = always
	Guard   Guard
	Now     func() time.Time // nil = time.Now
}

const (
	// grant is the approximate time that a session may run without asking again, and so the delay of a pause.
	grant = 100 * time.Millisecond
	// windowLook is the interval of checking the clock outside the windows.
	windowLook = 10 * time.Second
)

// Gate lets trials through. It is safe for concurrent use.
type Gate struct {
	opt Options

	mu       sync.Mutex // guards the fields below
	changed  chan struct{}
	paused   bool
	load     string // why the guard holds replays; "" = it does not
	measured *Load  // last measurement of the guard
	warning  string // about the guard
	active   int
	rest     time.Time // until then a single session pauses
	entered  time.Time // when a session last entered
}

// State is the present state of a Gate.
type State struct {
	Paused bool `json:"paused"`
	// Held is why no trial may begin: paused, outside the hours, or load; empty = trials may begin.
	Held     string `json:"held,omitempty"`
	Warning  string `json:"warning,omitempty"` // what the guard cannot see
	Sessions int    `json:"sessions"`          // running now
	// Limit is the number of sessions that may run, below 1 a share of the time; 0 = no limit.
	Limit float64 `json:"limit"`
	// Default describes the limit that holds because the configuration sets none, and the reason.
	Default string `json:"default,omitempty"`
	Load    *Load  `json:"load,omitempty"` // nil = not watched, or not measured yet
}

// New returns an open Gate. Its Guard works only while Run does: until the first measurement nothing passes.
func New(opt Options) *Gate {
	if opt.Now == nil {
		opt.Now = time.Now
	}
	g := &Gate{opt: opt, changed: make(chan struct{})}
	if opt.Guard.on() {
		g.load = "the load of the shadow database is not known yet"
	}
	return g
}

// Pause stops replays or resumes them. Running trials are not interrupted.
func (g *Gate) Pause(paused bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.paused = paused
	g.wake()
}

// SetShare replaces Options.Share and Options.Default.
func (g *Gate) SetShare(share float64, why string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.opt.Share, g.opt.Default = share, why
	g.rest = time.Time{}
	g.wake()
}

// limit returns the number of sessions that may run, below 1 a share of the time; 0 = no limit. The caller holds mu.
func (g *Gate) limit() float64 {
	if g.opt.Share > 0 && g.opt.Share < 1 {
		return g.opt.Share
	}
	return float64(g.opt.Sessions)
}

// State returns the present state.
func (g *Gate) State() State {
	g.mu.Lock()
	defer g.mu.Unlock()
	return State{Paused: g.paused, Held: g.held(g.opt.Now()), Warning: g.warning, Sessions: g.active, Limit: g.limit(), Default: g.opt.Default, Load: g.measured}
}

// Enter implements replay.Pace.
func (g *Gate) Enter(ctx context.Context, n int, each time.Duration) (int, error) {
	for {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		g.mu.Lock()
		wait := g.wait(g.opt.Now())
		if wait <= 0 {
			n = g.admit(g.opt.Now(), n, each)
			g.mu.Unlock()
			return n, nil
		}
		changed := g.changed
		g.mu.Unlock()
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-changed:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// Leave implements replay.Pace.
func (g *Gate) Leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.opt.Now()
	g.active--
	if limit := g.limit(); limit > 0 && limit < 1 {
		g.rest = now.Add(time.Duration(float64(now.Sub(g.entered)) * (1/limit - 1)))
	}
	g.wake()
}

// held returns why nothing may pass. Callers hold mu, here and below.
func (g *Gate) held(now time.Time) string {
	switch {
	case g.paused:
		return "paused"
	case !open(g.opt.Windows, now):
		return "outside the hours of audit.windows"
	}
	return g.load
}

// wait returns the longest time until the next check; 0 = a session may pass now.
func (g *Gate) wait(now time.Time) time.Duration {
	limit := g.limit()
	switch {
	case g.held(now) != "":
		return windowLook
	case limit > 0 && g.active >= max(1, int(limit)):
		return time.Hour // a session that leaves wakes the others
	}
	return max(g.rest.Sub(now), 0)
}

// admit admits one session and returns how many trials it may run.
func (g *Gate) admit(now time.Time, n int, each time.Duration) int {
	if each > 0 {
		n = min(n, max(1, int(grant/each)))
	}
	g.entered = now
	g.active++
	return n
}

// wake makes all waiting sessions check again.
func (g *Gate) wake() {
	close(g.changed)
	g.changed = make(chan struct{})
}

// Window is a time of day in a time zone. A window that ends before it begins spans midnight.
type Window struct {
	From, To int // minutes since midnight; To is excluded
	Zone     *time.Location
}

// open reports whether one of the windows contains the moment; none = always.
func open(windows []Window, now time.Time) bool {
	for _, w := range windows {
		local := now.In(w.Zone)
		minute := local.Hour()*60 + local.Minute()
		if w.From <= w.To && w.From <= minute && minute < w.To || w.From > w.To && (minute >= w.From || minute < w.To) {
			return true
		}
	}
	return len(windows) == 0
}
