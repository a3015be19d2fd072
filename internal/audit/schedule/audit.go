package schedule

import (
	"time"
)

// Phase is the progress of an audit, as far as its place and its turns depend on it.
type Phase uint8

// The phases of an audit.
const (
	Queued    Phase = iota // waits for a turn
	Running                // has a worker: never evicted
	Decided                // without a violation
	Violation              // evicted only by Retire
	Watching               // Decided, in a turn of the watch share: never evicted
)

// Owner identifies the queries that share a part of the places and of the turns.
type Owner struct{ User, Database, Route string }

// Audit is the scheduler's view of one audit; NewAudit returns one. The caller sets the exported fields and keeps them
// up to date; a Roster reads them in its methods. One lock must guard them all.
type Audit struct {
	*line

	Key   string // identity
	Shape string // of the query, without the parts that a client can vary at will
	Owner Owner
	// Promise is what the engine claims of the query. Each promise has places of its own in a shape: with another epsilon
	// the engine can be wrong where it was right.
	Promise string

	Seen     uint64 // times that clients ran the query
	LastSeen time.Time
	Trials   int
	// Wealth is the logarithm of the evidence against the claim, and Threshold the value at which it is a violation.
	Wealth, Threshold float64
	Bytes             int64 // of memory, estimated
	Extra             bool  // has a place beside Limits.Audits, which no other audit gets

	shape   *shape
	used    time.Duration // in turns
	since   time.Time     // start of the wait for the next turn
	number  uint64        // in order of admission
	at      int           // its place in members.list
	watched time.Time     // end of the last turn in the watch share
	advance time.Duration // charged to the watch share for the present turn
}

// line is what a Roster reads of every audit whenever one has a turn: 64 bytes, a line of the processor's cache. Those
// of a Roster lie one after the other.
type line struct {
	NotBefore time.Time // no turn before this time
	audit     *Audit    // of a Roster; nil = of none
	account   *account
	turns     int
	begun     int // shape.begun
	phase     Phase
	busy      bool // a violation that has a worker
	Measuring bool // a violation whose trials go on
	// Watched audits have short turns after they are decided, and Background ones are repeated, both in the watch
	// share.
	Watched, Background bool
	// Open: an earlier process showed a violation that is not resolved. The audit is never evicted, and its first turn
	// comes first.
	Open bool
	// Kept: the ledger has its latest evidence, so that the audit loses nothing with its place. Tried: the audit lost a
	// place after it had begun.
	Kept, Tried bool
}

// NewAudit returns an audit that is in no Roster.
func NewAudit(key, shape string, owner Owner) Audit {
	return Audit{line: new(line), Key: key, Shape: shape, Owner: owner}
}

// Phase returns the audit's phase.
func (a *Audit) Phase() Phase { return a.phase }

// Busy reports whether the audit has a worker.
func (a *Audit) Busy() bool { return a.busy || a.phase == Running || a.phase == Watching }

// waits reports whether the audit waits for a turn.
func (a *line) waits() bool {
	return a.phase == Queued || a.phase == Violation && a.Measuring && !a.busy
}

// untried reports whether the audit waits for its first trials.
func (a *line) untried() bool { return a.turns == 0 && !a.Tried }

// Turns returns how many turns the audit has had since it was admitted or began again.
func (a *Audit) Turns() int { return a.turns }

// Since returns when the audit began to wait for its next turn.
func (a *Audit) Since() time.Time { return a.since }

// shape holds the common state of the audits of one shape of one owner.
type shape struct {
	key    shapeKey
	audits []*Audit
	begun  int            // audits that have had a turn; each audit has a copy: see begin
	closed map[string]int // retired violations, by promise: they keep their places in the shape
}

// of returns the audits of a promise, and the number of its places that are taken.
func (s *shape) of(promise string) (audits []*Audit, places int) {
	if s == nil {
		return nil, 0
	}
	for _, a := range s.audits {
		if a.Promise == promise {
			audits = append(audits, a)
		}
	}
	return audits, len(audits) + s.closed[promise]
}

// begin adds to the number of audits that have had a turn.
func (s *shape) begin(n int) {
	s.begun += n
	for _, a := range s.audits {
		a.begun = s.begun
	}
}

type shapeKey struct {
	owner Owner
	shape string
}

// account holds the common state of the audits of one owner.
type account struct {
	audits int
	used   time.Duration // time in turns, starting at the smallest of the other owners
	picks  int           // turns that were not first ones
	// Since the last turn that was not a first one: first turns of new shapes, and of further audits of known shapes.
	fresh, further int
	waiting        int           // audits without a turn so far; set by Next
	watched        time.Duration // in short turns of the watch share
}

// Limits bound a Roster.
type Limits struct {
	Audits   int   // at the same time; violations may occupy half of them
	PerShape int   // of one owner and promise
	Bytes    int64 // of all audits together; 0 = no limit
	Watch    Watch
}
