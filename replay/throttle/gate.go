// Package throttle decides when replays may run, so that the shadow database is asked no harder than its operator wants.
//
// It owns a Gate, which every session passes before it runs trials: a rate, a number of sessions that shrinks when
// trials become slower, hours of the day, a guard on the database's load, and a switch. It knows neither queries nor
// results. In: what an operator allows. Out: when, and how many.
package throttle

import (
	"context"
	"math"
	"sync"
	"time"
)

// Options says how gently. The zero Options are as fast as the server can.
type Options struct {
	Rate     float64 // trials a second, all sessions together; 0 = no limit
	Sessions int     // at work at a time; 0 = no limit
	// Share is the part of the time in which a single session works, where it is above 0 and below 1; then Sessions does not count.
	Share float64
	// Default says which limits hold and why, for the status, where the operator set none.
	Default string
	// Slowdown is how many times slower than their best trials may become before fewer sessions work: half of them
	// after a second in which the mean was above it, one more after a second in which it was not. Below one session
	// the last one rests between its trials. 0 = not watched; it needs Sessions.
	Slowdown float64
	Windows  []Window // when replays may run; none = always
	Guard    Guard
	Now      func() time.Time // nil = time.Now
}

const (
	// lookEvery is how long slowness is watched before the number of sessions changes.
	lookEvery = time.Second
	// leastLimit is the share of the time for which a lone session works when trials stay slow.
	leastLimit = 1.0 / 16
	// grant is for how long about a session may run without asking again: so soon a pause takes effect.
	grant = 100 * time.Millisecond
	// windowLook is how often the clock is looked at outside the windows.
	windowLook = 10 * time.Second
)

// Gate lets trials through. It is safe for use by several goroutines.
type Gate struct {
	opt Options

	mu       sync.Mutex // guards the fields below
	changed  chan struct{}
	paused   bool
	load     string // why the guard holds replays; "" = it does not
	measured *Load  // what the guard measured last
	warning  string // about the guard
	active   int
	limit    float64
	next     time.Time // when the rate allows the next trial
	rest     time.Time // until then a lone session rests
	entered  time.Time // when a session entered last
	look     time.Time // when slowness is judged next
	slowness float64   // sum since the last look
	leaves   int
}

// State is what a Gate does now.
type State struct {
	Paused bool `json:"paused"`
	// Held is why no trial may begin: paused, the hour, or the load; empty = they may.
	Held     string `json:"held,omitempty"`
	Warning  string `json:"warning,omitempty"` // what the guard cannot see
	Sessions int    `json:"sessions"`          // at work now
	// Limit is how many may be at work, less than 1 for a share of the time; 0 = any number.
	Limit float64 `json:"limit"`
	// Default says which limit holds where the configuration sets none, and why.
	Default string `json:"default,omitempty"`
	Load    *Load  `json:"load,omitempty"` // nil = not watched, or not known
}

// New returns an open Gate. Guard works while Run does; till it looked first, nothing passes.
func New(opt Options) *Gate {
	if opt.Now == nil {
		opt.Now = time.Now
	}
	g := &Gate{opt: opt, changed: make(chan struct{})}
	g.limit = g.maxLimit()
	if opt.Guard.on() {
		g.load = "the load of the shadow database is not known yet"
	}
	return g
}

// Pause stops replays, or lets them go on. Trials that run already end by themselves.
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
	g.limit, g.rest = g.maxLimit(), time.Time{}
	g.wake()
}

// maxLimit is the limit while trials are not slow. Callers hold mu, or are alone.
func (g *Gate) maxLimit() float64 {
	if g.opt.Share > 0 && g.opt.Share < 1 {
		return g.opt.Share
	}
	return float64(g.opt.Sessions)
}

// State returns what the Gate does now.
func (g *Gate) State() State {
	g.mu.Lock()
	defer g.mu.Unlock()
	return State{Paused: g.paused, Held: g.held(g.opt.Now()), Warning: g.warning, Sessions: g.active, Limit: g.limit, Default: g.opt.Default, Load: g.measured}
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
func (g *Gate) Leave(slowdown float64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.opt.Now()
	g.active--
	g.slowness += slowdown
	g.leaves++
	if g.limit > 0 && g.limit < 1 {
		g.rest = now.Add(time.Duration(float64(now.Sub(g.entered)) * (1/g.limit - 1)))
	}
	if g.opt.Slowdown > 0 && !now.Before(g.look) {
		if g.slowness/float64(g.leaves) > g.opt.Slowdown {
			g.limit = max(g.limit/2, leastLimit)
		} else {
			g.limit = min(g.limit+1, g.maxLimit())
		}
		g.look, g.slowness, g.leaves = now.Add(lookEvery), 0, 0
	}
	g.wake()
}

// held says why nothing may pass. Callers hold mu, here and below.
func (g *Gate) held(now time.Time) string {
	switch {
	case g.paused:
		return "paused"
	case !open(g.opt.Windows, now):
		return "outside the hours of audit.windows"
	}
	return g.load
}

// wait returns for how long nothing may pass, at most; 0 = it may now.
func (g *Gate) wait(now time.Time) time.Duration {
	switch {
	case g.held(now) != "":
		return windowLook
	case g.limit > 0 && g.active >= max(1, int(g.limit)):
		return time.Hour // until one leaves
	}
	return max(g.next.Sub(now), g.rest.Sub(now), 0)
}

// admit lets one session in and returns how many trials it may run.
func (g *Gate) admit(now time.Time, n int, each time.Duration) int {
	if each > 0 {
		n = min(n, max(1, int(grant/each)))
	}
	if g.opt.Rate > 0 {
		n = min(n, max(1, int(math.Round(g.opt.Rate*grant.Seconds()))))
		if g.next.Before(now) {
			g.next = now
		}
		g.next = g.next.Add(time.Duration(float64(n) / g.opt.Rate * float64(time.Second)))
	}
	if g.look.IsZero() {
		g.look = now.Add(lookEvery)
	}
	g.entered = now
	g.active++
	return n
}

// wake lets everybody who waits look again.
func (g *Gate) wake() {
	close(g.changed)
	g.changed = make(chan struct{})
}
