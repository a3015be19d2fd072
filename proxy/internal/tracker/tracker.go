package tracker

import (
	"strings"
	"time"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/sqltext"
)

// Config is what a Tracker is made from.
type Config struct {
	SessionID uint64
	Startup   Startup
	// MaxStatementBytes is the longest text that is captured; longer ones are only followed.
	MaxStatementBytes int
	// MaxHeldBytes bounds what is remembered, about: half for prepared statements, half for portals.
	MaxHeldBytes int
	// Emit takes each captured query. It must not block.
	Emit func(capture.Query)
	// Interesting reports whether a statement may have to be captured; its argument is valid during the call
	// only. Statements that are not are followed and counted, but not captured. Nil: all are.
	Interesting func(sql string) bool
	// Counts may be shared with other trackers that the same goroutine runs.
	Counts *Counts
}

// Tracker follows one session. It is not safe for concurrent use.
type Tracker struct {
	cfg            Config
	client, server queue
	off            Off
	started        bool // the first ReadyForQuery was seen
	skipping       bool // an error in the extended protocol: all messages up to Sync are ignored
	copyFailed     bool // a COPY FROM STDIN failed before its CopyDone was taken out
	now            time.Time

	typ    byte // of the message that waits for its answer; 0 = none
	copyIn bool // it is a COPY FROM STDIN under way
	query  simpleQuery
	ext    extendedMessage

	statements     map[string]*statement
	portals        map[string]*portal
	heldStatements int  // bytes
	heldPortals    int  // bytes
	preparedSetter bool // a prepared statement may do something to the settings

	settings settings
	gate     gate
	dull     dull
}

// New returns a tracker for a session that has just sent its StartupMessage.
func New(cfg Config) *Tracker {
	return &Tracker{
		cfg: cfg, settings: newSettings(cfg.Startup),
		statements: map[string]*statement{}, portals: map[string]*portal{},
	}
}

// Feed takes the next whole records of both directions, which may be empty, and emits the queries that they
// complete. It keeps no reference to them.
func (t *Tracker) Feed(client, server []byte) {
	if t.off != On {
		return
	}
	t.client.push(client)
	t.server.push(server)
	for more := true; more; more = t.off == On && t.passGap() {
		for t.step() {
		}
	}
	t.dull.forget()
	t.client.settle()
	t.server.settle()
}

// Off says whether and why the tracker has stopped; it captures nothing more then.
func (t *Tracker) Off() Off { return t.off }

// Stop makes the tracker forget the session. Only the first reason counts.
func (t *Tracker) Stop(reason Off) {
	if t.off != On || reason == On {
		return
	}
	t.cfg.Counts.Off[reason]++
	*t = Tracker{off: reason}
}

// Backlog returns how many bytes of records wait for their counterpart, from the client and from the server.
func (t *Tracker) Backlog() (client, server int) { return len(t.client.buf), len(t.server.buf) }

// step moves on by one record; false when it cannot.
func (t *Tracker) step() bool {
	if t.off != On || (t.started && t.typ == 0 && !t.ask()) {
		return false
	}
	r, n, ok := t.server.peek()
	if !ok || r.typ == gapRecord || !t.answer(r) {
		return false
	}
	if t.off == On {
		t.server.drop(n)
	}
	return true
}

// ask takes client messages until one waits for an answer; false when there is none.
func (t *Tracker) ask() bool {
	for {
		r, ok := t.pop()
		if !ok {
			return false
		}
		switch r.typ {
		case 'c', 'f': // behind a COPY that failed, or stray: the server ignores them
			t.copyFailed = false
			continue
		case 'S':
			if t.copyFailed {
				t.Stop(OffCopy)
				return false
			}
			t.skipping = false
		}
		t.copyFailed = false
		if t.skipping {
			continue
		}
		t.typ, t.copyIn = r.typ, false
		t.begin(r)
		return true
	}
}

// pop takes out the client's next record, but no gap.
func (t *Tracker) pop() (record, bool) {
	if r, _, ok := t.client.peek(); !ok || r.typ == gapRecord {
		return record{}, false
	}
	return t.client.pop()
}

func (t *Tracker) begin(r record) {
	switch r.typ {
	case 'Q':
		t.beginQuery(r)
	case 'P', 'B', 'E', 'C':
		t.ext = extendedMessage{}
		t.beginExtended(r)
	case 'D', 'S', 'F':
	default:
		t.Stop(OffPairing)
	}
}

// answer handles the next server message; false when it cannot be before more client messages come.
func (t *Tracker) answer(r record) bool {
	switch r.typ {
	case timeRecord:
		t.now = recordTime(r.body)
		return true
	case 'S':
		t.gate.report(r.body, !r.cut)
		t.regate()
		return true
	}
	if !t.started {
		if r.typ == 'Z' {
			t.started = true
			t.ready(r)
		}
		return true
	}
	if t.copyIn && r.typ == 'C' {
		if done := t.endCopyIn(); !done {
			return false
		}
	}
	belongs := t.off == On
	switch t.typ {
	case 'Q':
		belongs = belongs && t.answerQuery(r)
	case 'S':
		belongs = belongs && t.answerSync(r)
	case 'F':
		belongs = belongs && t.answerFunctionCall(r)
	default:
		belongs = belongs && t.answerExtended(r)
	}
	if !belongs {
		t.Stop(OffPairing)
	}
	return true
}

// regate judges the message at hand anew when a status report came before its answer: whether the server read
// it before or after the change is not known, so it has to pass both.
func (t *Tracker) regate() {
	switch {
	case t.typ == 'Q' && len(t.query.done) == 0:
		t.query.gate(&t.gate)
	case t.typ == 'P' && t.ext.known:
		t.ext.statement = t.dull.own(t.ext.statement)
		t.ext.statement.gate(&t.gate)
	case t.typ == 'B' && t.ext.known:
		t.ext.portal.gate(&t.gate)
	}
}

// endCopyIn takes the client's messages up to the CopyDone of a COPY that succeeded; false while it has not
// come. The server ignores Flush and Sync in between.
func (t *Tracker) endCopyIn() bool {
	for {
		r, ok := t.pop()
		switch {
		case !ok:
			return false
		case r.typ == 'c':
			t.copyIn = false
			return true
		case r.typ != 'S':
			t.Stop(OffPairing)
			return true
		}
	}
}

// failed notes an ErrorResponse to the message at hand.
func (t *Tracker) failed() {
	t.copyFailed, t.copyIn = t.copyIn, false
	t.settings.fail()
}

func (t *Tracker) answerSync(r record) bool {
	switch r.typ {
	case 'E': // the commit failed
		t.failed()
	case 'Z':
		t.typ = 0
		t.ready(r)
	default:
		return false
	}
	return true
}

// answerFunctionCall follows the fast-path protocol; what the function did is not known.
func (t *Tracker) answerFunctionCall(r record) bool {
	if r.typ == 'V' {
		t.settings.apply(sqltext.Effect{Hidden: true}, "")
		return true
	}
	return t.answerSync(r)
}

// ready notes ReadyForQuery. Portals do not outlive their transaction.
func (t *Tracker) ready(r record) {
	status := byte(0)
	if len(r.body) == 1 {
		status = r.body[0]
	}
	if status != 'I' && status != 'T' && status != 'E' {
		t.Stop(OffPairing)
		return
	}
	t.settings.ready(status)
	t.gate.ready(status == 'I')
	if status == 'I' {
		t.forgetPortals()
	}
}

// effect does what a completed statement did to the session. What it returns is for EXECUTE.
func (t *Tracker) effect(e sqltext.Effect, tag string) (ran execution) {
	if e.Inert() {
		return ran
	}
	t.settings.apply(e, tag)
	t.gate.effect(e)
	switch e.Action {
	case sqltext.Prepare:
		t.prepareSQL(e)
	case sqltext.Execute:
		ran = t.executeSQL(e, tag)
	case sqltext.ExecuteWithin:
		if t.preparedSetter {
			t.settings.apply(sqltext.Effect{Hidden: true}, "")
		}
	case sqltext.Deallocate:
		if e.Name == "" {
			t.forgetStatements()
		} else {
			t.forgetStatement(e.Name)
		}
	case sqltext.DeclareCursor, sqltext.CloseCursor:
		if e.Name == "" {
			t.forgetPortals()
		} else {
			t.forgetPortal(e.Name)
		}
	case sqltext.DiscardAll, sqltext.Unclear:
		t.forgetStatements()
		t.forgetPortals()
	}
	return ran
}

// unseen notes that a statement completed whose text is not known: it may have done anything to the settings,
// and to prepared statements and portals what its command tag allows.
func (t *Tracker) unseen(reason Reason, tag string) {
	t.cfg.Counts.Skipped[reason]++
	t.settings.poison()
	t.gate.change()
	verb, _, _ := strings.Cut(tag, " ")
	switch verb {
	case "PREPARE", "DEALLOCATE", "DISCARD", "DECLARE", "CLOSE", "DO", "CALL":
		t.preparedSetter = true
		t.forgetStatements()
		t.forgetPortals()
	}
}

// capture emits a completed statement.
func (t *Tracker) capture(q capture.Query, v *view, hidden bool) {
	q.SessionID = t.cfg.SessionID
	q.User, q.Database, q.ApplicationName = t.cfg.Startup.User, t.cfg.Startup.Database, v.app
	q.Settings, q.SettingsUncertain, q.Temporary = v.settings, v.uncertain || hidden, v.temps.namedIn(q.SQL)
	t.cfg.Counts.Captured++
	t.cfg.Emit(q)
}
