package replay

import (
	"sync"
	"time"

	"github.com/dpwatch/dpwatch/replay/hoisting"
)

// Parameters of the decision to hoist.
const (
	// hoistSample is the number of rounds of the whole query that come first.
	hoistSample = 100
	// A hoisted round must be hoistGain times as fast as one of the whole query: half of the time goes to each kind, so
	// that less would not be worth it.
	hoistGain = 3
	// To compare the times, batches of rounds of both kinds that are no evidence run in turn: timedBatches of each at
	// most, and not more once those of the whole query have taken timedMost. At least two of each run. A batch has one
	// round of the whole query, or timedHoisted hoisted ones: of these many run at once.
	timedBatches = 20
	timedHoisted = 10
	timedMost    = 2 * time.Second
)

// Hoisting is the state of hoisting for one query over all Runs of its audit. NewHoisting creates it; two Runs must not
// use it at once. Report may be called at any time.
type Hoisting struct {
	// Announce is called before a statement is split, and the function that it returns is called afterwards. The parser
	// is a C library: if it crashes the process, a supervisor can find the statement that was being parsed.
	Announce func() (done func())

	noise  []string
	always bool // of tests: hoist even if trials get no faster, and then all of them
	// took returns the time of rounds: what was measured, except in tests.
	took   func(hoisted bool, rounds int, measured time.Duration) time.Duration
	phase  hoistPhase
	never  bool // trials will not be hoisted, for a reason that does not depend on their results
	reason string
	broken string // why hoisted rounds are no evidence; "" = they are
	parts  *hoisted
	slow   meter // rounds of the whole query
	quick  meter // hoisted rounds
	counts hoisting.Report

	mu       sync.Mutex // guards reported
	reported hoisting.Report
}

type hoistPhase uint8

const (
	hoistSampling hoistPhase = iota // rounds of the whole query, until a decision
	hoistOn
	hoistOff
)

// NewHoisting returns a Hoisting in its first phase. noise lists functions, by name without schema, that draw noise
// whatever the catalog declares.
func NewHoisting(noise []string) *Hoisting {
	return &Hoisting{Announce: func() func() { return func() {} }, noise: noise, took: measured}
}

func measured(_ bool, _ int, took time.Duration) time.Duration { return took }

// Report returns the state at the end of the last completed call of Rounds.
func (h *Hoisting) Report() hoisting.Report {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.reported
}

// note updates the result of Report.
func (h *Hoisting) note() {
	r := h.counts
	r.Hoisted, r.Reason = h.phase == hoistOn, h.reason
	if h.parts != nil {
		r.Pieces, r.Together = len(h.parts.pieces), h.parts.together
	}
	if h.slow.rounds > 0 && h.quick.rounds > 0 {
		r.SpeedUp = float64(h.slow.round()) / float64(h.quick.round())
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.reported = r
}
