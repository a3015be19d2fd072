package tracker

import (
	"fmt"
	"time"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/sqltext"
)

// Config configures a Tracker.
type Config struct {
	SessionID uint64
	Startup   Startup
	// MaxStatementBytes is the length of the longest text that is captured; longer ones are only followed.
	MaxStatementBytes int
	// MaxHeldBytes approximately bounds the state kept: half for prepared statements, half for portals.
	MaxHeldBytes int
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

// skip counts a statement that is not captured; sql is its text, "" if that is not known.
func (t *Tracker) skip(reason Reason, sql string) {
	t.cfg.Counts.Skipped[reason]++
	s := &t.cfg.Startup
	if reason == Unprotected || !t.cfg.Samples.Wants(reason.String(), s.User, s.Database, s.ApplicationName) {
		return
	}
	x := capture.SampleOf(reason.String(), capture.Query{SQL: sql, User: s.User, Database: s.Database, ApplicationName: s.ApplicationName, Completed: t.now},
		reason == Encoding || reason == Strings)
	if reason == TooLong {
		x.Detail = fmt.Sprintf("%d bytes", len(sql))
	}
	t.cfg.Samples.Add(x)
}

// Tracker follows one session. It is not safe for concurrent use.
type Tracker struct {
	cfg            Config
	client, server queue
	off            Off
	started        bool // the first ReadyForQuery has been seen
	skipping       bool // after an error in the extended protocol: messages up to Sync are ignored
	now            time.Time

	typ      byte // type of the message that waits for its answer; 0 = none
	answered bool // a part of its answer has been seen
	copyIn   bool // that message is a COPY FROM STDIN in progress
	query    simpleQuery
	ext      extendedMessage

	unbound    unbound
	failedCopy failedCopy
	bare       bare
	gap        gap
	ignored    Unanswered
	settled    Unanswered // at the last ReadyForQuery

	statements     map[string]*statement
	portals        map[string]*portal
	heldStatements int  // bytes
	heldPortals    int  // bytes
	preparedSetter bool // a prepared statement can change settings
	preparedHides  bool // one can do so in a way that its command tag does not show
	unknown        unknown

	settings    settings
	ownCode     bool          // the session created a function that may change settings
	cursors     sqltext.Doubt // what running its cursors can change
	gate        gate
	unprotected unprotected
}

// New returns a tracker for a session that has just sent its StartupMessage.
func New(cfg Config) *Tracker {
	return &Tracker{
		cfg: cfg, settings: newSettings(cfg.Startup),
		statements: map[string]*statement{}, portals: map[string]*portal{},
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
	}
}

// step processes one record; false if it cannot.
func (t *Tracker) step() bool {
	if t.off != On || t.gap.lost || t.gap.begun {
		return false
	}
	waits := t.started && t.typ == 0 && !t.ask()
	r, n, ok := t.server.peek()
	if !ok || t.gap.lost || r.typ == gapRecord || waits && !t.unasked(r) || !t.answer(r) {
		return false
	}
	if t.off == On {
		t.server.drop(n)
	}
	return true
}

// unasked reports whether a server message can be handled although the client's next message is not known yet.
func (t *Tracker) unasked(r record) bool {
	return r.typ == 'Z' && t.bare.active && t.bare.most > 0 || r.typ == 'S' || r.typ == timeRecord
}

// ask takes client messages until one expects an answer; false if there is none.
func (t *Tracker) ask() bool {
	for {
		r, ok := t.pop()
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
			t.skipped(r)
			continue
		}
		t.typ, t.answered, t.copyIn = r.typ, false, false
		if t.unbound.portal != nil {
			t.unbound = unbound{}
		}
		t.begin(r)
		return true
	}
}

// pop removes the client's next record unless it is a gap.
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
		t.lose()
	}
}

// answer handles the next server message; false if it needs more client messages first.
func (t *Tracker) answer(r record) bool {
	switch r.typ {
	case timeRecord:
		t.now = recordTime(r.body)
		return true
	case 'S':
		t.reported(r)
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
	if t.typ == 0 || !t.answered {
		if r.typ == 'Z' && t.typ != 'S' && t.bare.ready() {
			t.ready(r)
			return true
		}
		if r.typ != 'Z' && !t.content() {
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
		belongs = belongs && t.answerFunctionCall(r)
	default:
		belongs = belongs && t.answerExtended(r)
	}
	if !belongs && !t.gap.lost {
		t.lose()
	}
	return true
}

// regate checks the current message again when a status report precedes its answer. It is unknown whether the server
// read the message before or after the change, so the message must pass both times.
func (t *Tracker) regate() {
	switch {
	case t.typ == 'Q' && len(t.query.done) == 0:
		t.query.gate(&t.gate)
	case t.typ == 'P' && t.ext.known:
		t.ext.statement = t.unprotected.own(t.ext.statement)
		t.ext.statement.gate(&t.gate)
	case t.typ == 'B' && t.ext.known:
		t.ext.portal.gate(&t.gate)
	}
}

// endCopyIn takes the client's messages up to the CopyDone of a COPY that succeeded; false if it has not come yet. In
// between, the server ignores Flush and Sync.
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
			t.lose()
			return true
		}
		t.ignored.Copy++
	}
}

// reported handles a ParameterStatus message.
func (t *Tracker) reported(r record) {
	t.gate.report(r.body, !r.cut)
	t.settings.report(r.body, !r.cut)
}

// failed handles an ErrorResponse to the current message, at a statement with this effect.
func (t *Tracker) failed(e sqltext.Effect) {
	if t.copyIn {
		t.copyIn, t.failedCopy, t.bare = false, failedCopy{active: true}, bare{active: true}
	}
	t.settings.fail(e)
}

func (t *Tracker) answerSync(r record) bool {
	switch r.typ {
	case 'E': // the commit failed
		t.failed(sqltext.Effect{})
	case 'Z':
		t.typ = 0
		t.ready(r)
	default:
		return false
	}
	return true
}

// answerFunctionCall follows the fast-path protocol; the effect of the function is unknown.
func (t *Tracker) answerFunctionCall(r record) bool {
	if r.typ == 'V' {
		t.settings.begin()
		t.settings.doubtAll()
		return true
	}
	return t.answerSync(r)
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
	if status == 'I' { // at the end of a transaction, cursors WITH HOLD run to their end
		t.settings.doubt(t.cursors)
		t.cursors = sqltext.Doubt{}
	}
	t.settings.ready(status)
	t.gate.ready(status == 'I')
	if status == 'I' {
		t.forgetPortals()
	}
}

// effect applies the effect of a completed statement, which had these parameters, to the session. The result is set for
// EXECUTE.
func (t *Tracker) effect(e sqltext.Effect, params []capture.Param, tag string) (ran execution) {
	if t.ownCode && runsCode(e) {
		t.settings.begin()
		t.settings.doubtAll()
	}
	if e.Inert() {
		return ran
	}
	changes, doubt := t.assignments(e.Assignments, params)
	if doubt {
		e.Doubt.Any = true
	}
	t.settings.apply(e, changes, tag)
	t.gate.effect(e, changes)
	t.ownCode = t.ownCode || e.Defines
	switch e.Action {
	case sqltext.Prepare:
		t.prepareSQL(e)
	case sqltext.Execute:
		ran = t.executeSQL(e, tag)
	case sqltext.ExecuteWithin:
		if ran = t.execution(e); ran.statement != nil {
			t.settings.apply(sqltext.Effect{Doubt: ran.statement.mayChange()}, nil, tag)
		} else if t.preparedSetter {
			t.settings.doubtAll()
		}
	case sqltext.Deallocate:
		if e.Name == "" {
			t.forgetStatements()
		} else {
			t.forgetStatement(e.Name)
		}
	case sqltext.DeclareCursor:
		if t.cursors = t.cursors.With(e.Doubt); len(t.cursors.Calls)+len(t.cursors.Names) > maxCalls {
			t.cursors = sqltext.Doubt{Any: true}
		}
		t.forgetPortal(e.Name)
	case sqltext.CloseCursor:
		if e.Name == "" {
			t.forgetPortals()
		} else {
			t.forgetPortal(e.Name)
		}
	case sqltext.Fetch, sqltext.Commit: // of a cursor WITH HOLD
		t.settings.apply(sqltext.Effect{Doubt: t.cursors}, nil, "")
	case sqltext.DiscardAll:
		t.ownCode, t.cursors = false, sqltext.Doubt{}
		t.forgetStatements()
		t.forgetPortals()
	case sqltext.Unclear:
		t.forgetStatements()
		t.forgetPortals()
	}
	return ran
}

// runsCode reports whether a statement may call functions.
func runsCode(e sqltext.Effect) bool {
	switch e.Action {
	case sqltext.None, sqltext.Execute, sqltext.ExecuteWithin, sqltext.DeclareCursor, sqltext.Fetch, sqltext.Commit, sqltext.Unclear:
		return true
	}
	return false
}

// unseen handles a completed statement whose text is unknown, except that its words have this risk.
func (t *Tracker) unseen(reason Reason, tag string, words sqltext.Risk) {
	t.skip(reason, "")
	t.risk(words | sqltext.TagRisk(tag))
	switch tag {
	case "BEGIN", "START TRANSACTION":
		t.settings.apply(sqltext.Effect{Action: sqltext.Begin}, nil, tag)
	case "COMMIT":
		t.settings.apply(sqltext.Effect{Action: sqltext.Commit}, nil, tag)
	case "ROLLBACK": // or ROLLBACK TO SAVEPOINT: then the transaction status contradicts
		t.settings.apply(sqltext.Effect{Action: sqltext.Rollback}, nil, tag)
	}
}

// capture emits a statement that was run. Besides what was in doubt before, own is what it could change itself.
func (t *Tracker) capture(q capture.Query, e *ending, v *view, own capture.Doubt) {
	q.SessionID = t.cfg.SessionID
	q.User, q.Database, q.ApplicationName = t.cfg.Startup.User, t.cfg.Startup.Database, v.app
	q.Tag, q.Completed, q.Outcome, q.SQLState = e.tag, e.at, e.outcome, e.state
	q.Settings, q.Doubt, q.Temporary = v.settings, v.doubt.Add(own), v.temps.namedIn(q.SQL)
	t.cfg.Counts.Captured++
	t.cfg.Emit(q)
}
