package replay

import (
	"sync"
	"time"
)

// How hoisting decides.
const (
	// hoistSample is how many unmodified rounds come first, and how many hoisted ones are compared with them before any
	// hoisted one counts.
	hoistSample = 100
	// Afterwards so many of the rounds are unmodified, as long as they take no more than plainTime of the time.
	plainShare = 0.05
	plainTime  = 0.2
	// hoistGain is how much faster a hoisted round must be than an unmodified one. Where it is not, the question is asked
	// hoistAsks times altogether, after hoistAgain times as many unmodified rounds each: it may have been the machine.
	hoistGain  = 1.1
	hoistAsks  = 3
	hoistAgain = 5
	// hoistChunk is how many rounds of the samples are timed at once.
	hoistChunk = 20
)

// Hoisting is what is known about hoisting one query, over all Runs of its audit. Make it with NewHoisting; it must
// not be used by two Runs at once. Report and Disagreed may be called at any time.
type Hoisting struct {
	// Announce, if not nil, is called before the SQL library, which is C, takes a statement apart, and what it returns
	// afterwards: whoever watches the process knows then what it died of.
	Announce func() (done func())

	noise  []string
	always bool             // even where it is not faster
	now    func() time.Time // time.Now
	phase  hoistPhase
	ask    int // unmodified rounds at which the next decision is due
	asks   int // decisions that found it not faster
	first  int // unmodified rounds before hoisting was on
	reason string
	parts  *hoisted
	proof  proof
	slow   meter   // unmodified rounds
	quick  meter   // hoisted rounds
	credit float64 // unmodified rounds that are due
	counts HoistReport
	// verified is the number of hoisted rounds that were given when Verify compared them last.
	verified int

	mu       sync.Mutex // guards reported and differ
	reported HoistReport
	differ   *DisagreementError
}

type hoistPhase uint8

const (
	hoistSampling hoistPhase = iota // unmodified rounds, until a decision
	hoistOn
	hoistOff
)

// HoistReport says what hoisting did for an audit.
type HoistReport struct {
	// Hoisted: trials run on materialised parts.
	Hoisted bool `json:"hoisted"`
	// Reason is why not, or "" as long as nothing was asked or hoisting is on. That hoisted trials are not faster may
	// change: it is asked again.
	Reason string `json:"reason,omitempty"`
	// Pieces is the number of tables that a session makes for all worlds together.
	Pieces int `json:"pieces,omitempty"`
	// SpeedUp is the time of an unmodified round over that of a hoisted one.
	SpeedUp float64 `json:"speed_up,omitempty"`
	// Together: hoisted trials share implicit transactions.
	Together bool `json:"together,omitempty"`
	// UnmodifiedRounds and HoistedRounds are the rounds given; Comparisons how often the two were compared.
	UnmodifiedRounds int `json:"unmodified_rounds"`
	HoistedRounds    int `json:"hoisted_rounds"`
	Comparisons      int `json:"comparisons"`
}

// NewHoisting begins. noise are functions that draw noise whatever the catalog declares, by name without schema.
func NewHoisting(noise []string) *Hoisting {
	return &Hoisting{noise: noise, now: time.Now, ask: hoistSample}
}

// Report returns what hoisting did up to the last call of Rounds that ended.
func (h *Hoisting) Report() HoistReport {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.reported
}

// Disagreed returns the difference that was found since the last call, or nil. A reader of Stream must ask when the
// loop has ended, as the batch that was read ahead may have shown one: the evidence is worth nothing then. A nil
// Hoisting never disagrees.
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

// Stop ends hoisting for the rest of the audit, for a reason that Report gives. No Run of the audit may be at work. A nil Hoisting
// is left alone.
func (h *Hoisting) Stop(reason string) {
	if h == nil {
		return
	}
	h.phase, h.reason = hoistOff, reason
	h.proof.forget()
	h.note()
}

// note makes the present state visible to Report.
func (h *Hoisting) note() {
	r := h.counts
	r.Hoisted, r.Reason, r.Comparisons = h.phase == hoistOn, h.reason, h.proof.looks+h.proof.verifies
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

// DisagreementError says that hoisted and unmodified trials differed more than chance explains: what the hoisted ones
// gave is no evidence. The audit has to begin again; its trials are unmodified from now on.
type DisagreementError struct{ What string }

// Error says where they differed.
func (e *DisagreementError) Error() string {
	return "hoisted trials differ from unmodified ones in " + e.What + "; the evidence is dropped and trials are no longer hoisted"
}
