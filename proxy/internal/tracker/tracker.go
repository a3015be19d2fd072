package tracker

import (
	"time"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/sqltext"
)

// Config configures a Tracker.
type Config struct {
	SessionID uint64
	Began     time.Time // when the session was opened
	Startup   Startup
	// MaxStatementBytes is the length of the longest text that is captured; longer ones are only followed.
	MaxStatementBytes int
	// MaxHeldBytes approximately bounds the state kept: half for prepared statements, half for portals.
	MaxHeldBytes int
	// StatedClaims is set if the records hold what the engine states about its answers.
	StatedClaims bool
	// Emit receives each captured query. It must not block.
	Emit func(capture.Query)
	// MaybeProtected reports whether a statement may read protected data; its argument is valid only during the call.
	// Other statements are tracked and counted, not captured. Nil means that all are captured.
	MaybeProtected func(sql string) bool
	// Counts can be shared with other trackers that run on the same goroutine.
	Counts *Counts
	// Samples receives a few of the statements that are not captured, except for Unprotected. Nil means none.
	Samples *capture.Samples
}

// Tracker follows one session. It is not safe for concurrent use.
type Tracker struct {
	cfg            *Config
	client, server queue
	off            Off
	started        bool // the first ReadyForQuery has been seen
	skipping       bool // after an error in the extended protocol: messages up to Sync are ignored

	typ      byte   // type of the message that waits for its answer; 0 = none
	answered bool   // a part of its answer has been seen
	copyIn   bool   // that message is a COPY FROM STDIN in progress
	call     Reason // how that message counts, if it is a FunctionCall
	simple   simple
	extended extended

	failedCopy failedCopy
	bare       bare
	gap        gap
	ignored    Unanswered
	settled    Unanswered // at the last ReadyForQuery

	held    *held
	session *session
	out     *emitter
}

// New returns a tracker for a session that has just sent its StartupMessage.
func New(cfg Config) *Tracker {
	out := &emitter{cfg: &cfg}
	held := &held{cfg: &cfg, out: out, statements: map[string]*statement{}, portals: map[string]*portal{}}
	session := &session{cfg: &cfg, out: out, held: held, settings: newSettings(cfg.Startup, cfg.MaybeProtected)}
	return &Tracker{
		cfg: &cfg, held: held, session: session, out: out,
		simple: simple{cfg: &cfg, out: out, held: held, session: session}, extended: extended{cfg: &cfg, out: out, held: held, session: session},
	}
}

// Feed processes the next whole records of both directions, possibly empty, and emits the queries that they complete.
// It does not retain the slices.
func (t *Tracker) Feed(client, server []byte) {
	if t.off != On {
		return
	}
	t.client.push(client)
	t.server.push(server)
	for more := true; more; more = t.off == On && t.pass() {
		for t.step() {
		}
	}
	t.client.settle()
	t.server.settle()
}

// Off returns why the tracker has stopped, or On. A stopped tracker captures nothing.
func (t *Tracker) Off() Off { return t.off }

// Stop stops the tracker and releases its state. Only the first reason counts.
func (t *Tracker) Stop(reason Off) {
	if t.off != On || reason == On {
		return
	}
	t.cfg.Counts.Off[reason]++
	*t = Tracker{off: reason}
}

// Idle reports whether all records are matched and no answer is expected.
func (t *Tracker) Idle() bool {
	return t.off == On && t.started && t.typ == 0 && !t.skipping && !t.failedCopy.active && !t.bare.active &&
		!t.gap.lost && !t.gap.begun && len(t.client.buf)+len(t.server.buf) == 0
}

// Backlog returns how many bytes of records from each side wait for their counterpart.
func (t *Tracker) Backlog() (client, server int) { return len(t.client.buf), len(t.server.buf) }

// End handles the end of the session: no more records come.
func (t *Tracker) End() {
	if t.off == On && !t.gap.lost && !t.gap.begun {
		t.abandon()
		t.extended.forgetUnbound()
		t.held.forgetPortals()
	}
}

// step processes one record; false if it cannot.
func (t *Tracker) step() bool {
	if t.off != On || t.gap.lost || t.gap.begun {
		return false
	}
	waits := t.started && t.typ == 0 && !t.ask()
	r, n, ok := t.server.peek()
	if !ok || t.gap.lost || r.typ == gapRecord || waits && !t.bare.unasked(r) || !t.answer(r) {
		return false
	}
	if t.off == On {
		t.server.drop(n)
		if r.typ != statedRecord {
			t.out.stated = capture.Stated{}
		}
	}
	return true
}

// ask takes client messages until one expects an answer; false if there is none.
func (t *Tracker) ask() bool {
	for {
		r, ok := t.client.next()
		if !ok {
			return false
		}
		if t.failedCopy.active && !t.afterFailedCopy(r) {
			if t.gap.lost {
				return false
			}
			continue
		}
		switch r.typ {
		case 'c', 'f': // stray: the server ignores them
			continue
		case 'S':
			t.skipping = false
			if t.bare.active {
				t.bare.sync(false)
				continue
			}
		}
		if t.skipping {
			if r.typ == 'Q' || r.typ == 'F' {
				t.ignored.Skipped++
			}
			t.extended.skipped(r)
			continue
		}
		t.typ, t.answered, t.copyIn = r.typ, false, false
		t.extended.forgetUnbound()
		t.begin(r)
		return true
	}
}

func (t *Tracker) begin(r record) {
	switch r.typ {
	case 'Q':
		t.simple.begin(r)
	case 'P', 'B', 'E', 'C':
		t.extended.message = extendedMessage{}
		t.extended.begin(r)
	case 'F':
		t.beginCall(r)
	case 'D', 'S':
	default:
		t.lose()
	}
}

// answer handles the next server message; false if it needs more client messages first.
func (t *Tracker) answer(r record) bool {
	switch r.typ {
	case timeRecord:
		t.out.now = recordTime(r.body)
		return true
	case statedRecord:
		t.out.stated, _ = capture.DecodeStated(r.body)
		return true
	case 'S':
		t.session.reported(r)
		if t.typ == 'Q' {
			t.simple.regate()
		} else {
			t.extended.regate(t.typ)
		}
		return true
	}
	if !t.started {
		if r.typ == 'Z' {
			t.started = true
			t.ready(r)
		}
		return true
	}
	if t.typ == 0 || !t.answered {
		if r.typ == 'Z' && t.typ != 'S' && t.bare.ready() {
			t.ready(r)
			return true
		}
		if r.typ != 'Z' && !t.bare.content(&t.ignored) {
			t.lose()
			return true
		}
		t.answered = true
	}
	if t.copyIn && r.typ == 'C' {
		if done := t.endCopyIn(); !done {
			return false
		}
	}
	belongs := !t.gap.lost
	switch t.typ {
	case 'Q':
		belongs = belongs && t.answerQuery(r)
	case 'S':
		belongs = belongs && t.answerSync(r)
	case 'F':
		belongs = belongs && t.answerCall(r)
	default:
		belongs = belongs && t.answerExtended(r)
	}
	if !belongs && !t.gap.lost {
		t.lose()
	}
	return true
}

// endCopyIn takes the client's messages up to the CopyDone of a COPY that succeeded; false if it has not come yet. In
// between, the server ignores Flush and Sync.
func (t *Tracker) endCopyIn() bool {
	for {
		r, ok := t.client.next()
		switch {
		case !ok:
			return false
		case r.typ == 'c':
			t.copyIn = false
			return true
		case r.typ != 'S':
			t.lose()
			return true
		}
		t.ignored.Copy++
	}
}

// failed handles an ErrorResponse to the current message, at a statement with this effect.
func (t *Tracker) failed(e sqltext.Effect) {
	if t.copyIn {
		t.copyIn, t.failedCopy, t.bare = false, failedCopy{active: true}, bare{active: true}
	}
	if !t.session.settings.block {
		t.session.endTransaction(false)
	}
	t.session.settings.fail(e)
}

func (t *Tracker) answerSync(r record) bool {
	switch r.typ {
	case 'E': // the commit failed
		t.session.endFailed(t.out.failure(r))
		t.failed(sqltext.Effect{})
	case 'Z':
		t.typ = 0
		t.ready(r)
	default:
		return false
	}
	return true
}

// ready handles ReadyForQuery. Portals end with their transaction.
func (t *Tracker) ready(r record) {
	status := byte(0)
	if len(r.body) == 1 {
		status = r.body[0]
	}
	if status != 'I' && status != 'T' && status != 'E' {
		t.lose()
		return
	}
	t.settled = t.ignored
	if status == 'I' {
		t.session.endTransaction(!t.session.settings.failed) // COMMIT itself may have failed
		t.session.settings.doubt(t.session.cursors)
		t.session.cursors = sqltext.Doubt{}
	}
	t.session.settings.ready(status)
	t.session.gate.ready(status == 'I')
}
