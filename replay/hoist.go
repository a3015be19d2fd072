package replay

import (
	"sync"
	"time"

	"github.com/dpwatch/dpwatch/replay/hoisting"
)

// Parameters of the decision to hoist.
const (
	// hoistSample is the number of unmodified rounds that come first, and the number of hoisted rounds that are
	// compared with them before a hoisted round counts.
	hoistSample = 100
	// Afterwards plainShare of the rounds are unmodified, as long as they take at most plainTime of the time.
	plainShare = 0.05
	plainTime  = 0.2
	// A hoisted round must be hoistGain times as fast as an unmodified one. If it is not, a load spike may be the
	// reason, so the decision is repeated up to hoistAsks times altogether, each after hoistAgain times as many
	// unmodified rounds.
	hoistGain  = 1.1
	hoistAsks  = 3
	hoistAgain = 5
	// hoistChunk is the number of rounds of the samples that are timed together.
	hoistChunk = 20
)

// Hoisting is the state of hoisting for one query over all Runs of its audit. NewHoisting creates it; two Runs must not
// use it at once. Report and Disagreed may be called at any time.
type Hoisting struct {
	// Announce is called before a statement is split, and the function that it returns is called afterwards. The parser
	// is a C library: if it crashes the process, a supervisor can find the statement that was being parsed.
	Announce func() (done func())

	noise      []string
	always     bool             // hoist even if trials get no faster
	now        func() time.Time // time.Now
	phase      hoistPhase
	ask        int // number of unmodified rounds at which the next decision is due
	asks       int // decisions that found hoisting not faster
	first      int // unmodified rounds before hoisting was turned on
	reason     string
	parts      *hoisted
	comparison comparison
	slow       meter   // unmodified rounds
	quick      meter   // hoisted rounds
	credit     float64 // unmodified rounds that are due
	counts     hoisting.Report
	// verified is the number of hoisted rounds at the last comparison by Verify.
	verified int

	mu       sync.Mutex // guards reported and differ
	reported hoisting.Report
	differ   *DisagreementError
}

type hoistPhase uint8

const (
	hoistSampling hoistPhase = iota // unmodified rounds, until a decision
	hoistOn
	hoistOff
)

// NewHoisting returns a Hoisting in its first phase. noise lists functions, by name without schema, that draw noise
// whatever the catalog declares.
func NewHoisting(noise []string) *Hoisting {
	return &Hoisting{Announce: func() func() { return func() {} }, noise: noise, now: time.Now, ask: hoistSample}
}

// Report returns the state at the end of the last completed call of Rounds.
func (h *Hoisting) Report() hoisting.Report {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.reported
}

// Disagreed returns the difference found since the last call, or nil. A reader of Stream must call it after the loop:
// the batch that was read ahead may have shown a difference, and then the evidence is invalid. A nil Hoisting never
// disagrees.
func (h *Hoisting) Disagreed() *DisagreementError {
	if h == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	differ := h.differ
	h.differ = nil
	return differ
}

// Stop ends hoisting for the rest of the audit; Report returns the reason. No Run of the audit may be active. Stop of a
// nil Hoisting does nothing.
func (h *Hoisting) Stop(reason string) {
	if h == nil {
		return
	}
	h.phase, h.reason = hoistOff, reason
	h.comparison.forget()
	h.note()
}

// note updates the result of Report.
func (h *Hoisting) note() {
	r := h.counts
	r.Hoisted, r.Reason, r.Comparisons = h.phase == hoistOn, h.reason, h.comparison.looks+h.comparison.verifies
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

// DisagreementError reports that hoisted and unmodified trials differ more than chance explains: outcomes of the
// hoisted trials are no evidence. The audit must start again, with unmodified trials.
type DisagreementError struct{ What string }

// Error names the place of the difference.
func (e *DisagreementError) Error() string {
	return "hoisted trials differ from unmodified ones in " + e.What + "; the evidence is discarded and trials are no longer hoisted"
}
