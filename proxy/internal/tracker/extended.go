package tracker

import (
	"bytes"
	"cmp"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/sqltext"
)

// maxNames limits the prepared statements, and the portals, that are kept for a session.
const maxNames = 4096

// entryBytes is the approximate overhead of keeping one of them besides its text, in bytes.
const entryBytes = 256

// statement is a prepared statement.
type statement struct {
	sql    string // the one statement; "" for an empty query
	oids   []uint32
	effect sqltext.Effect
	text   letters
	unseen Reason       // why its text is unknown; captured if it is known
	risk   sqltext.Risk // of an unknown text
	skip   Reason       // why it is not captured although its effect is known
}

// hides reports whether the statement can change settings in a way that its command tag does not show.
func (s *statement) hides() bool {
	return s.effect.Doubt.Any || len(s.effect.Doubt.Names)+len(s.effect.Assignments) > 0 || s.unseen != captured && s.risk&sqltext.RiskSettings != 0
}

func (s *statement) size() int { return entryBytes + len(s.sql) + 4*len(s.oids) }

// extendedMessage is the Parse, Bind, Execute or Close message that waits for its answer.
type extendedMessage struct {
	known     bool // it could be decoded, so the names are known
	name      string
	statement *statement // Parse
	portal    *portal    // Bind, Execute
	what      byte       // Close
}

// extended follows the extended query protocol.
type extended struct {
	cfg     *Config
	out     *emitter
	held    *held
	session *session
	message extendedMessage
	unbound unbound
}

func (x *extended) begin(r record) {
	if r.cut {
		x.cut(r)
		return
	}
	switch r.typ {
	case 'P':
		x.parse(r.body)
	case 'B':
		x.bind(r.body)
	case 'E':
		var name []byte
		if name, x.message.known = decodeExecute(r.body); x.message.known {
			x.message.portal = x.held.portals[string(clip(name))]
		}
	case 'C':
		var name []byte
		x.message.what, name, x.message.known = decodeClose(r.body)
		x.message.name = string(clip(name))
	}
}

// beginCut reads the names at the beginning of a truncated Parse or Bind message.
func (x *extended) cut(r record) {
	b := reader{b: r.body}
	name := string(clip(b.cstring()))
	switch r.typ {
	case 'P':
		x.message.statement = &statement{unseen: NotCopied, risk: r.risk}
		if name == "" {
			x.held.forgetStatement("")
		}
	case 'B':
		x.message.portal = &portal{statement: x.held.statements[string(clip(b.cstring()))], extended: true, skip: NotCopied, bytes: entryBytes}
	default:
		return
	}
	x.message.known, x.message.name = !b.bad, name
}

func (x *extended) parse(body []byte) {
	m, ok := decodeParse(body)
	if !ok {
		return
	}
	x.message.known, x.message.name = true, string(clip(m.name))
	if x.message.name == "" {
		x.held.forgetStatement("") // it is destroyed even if the new one fails
	}
	if x.unprotectedStatement(m.sql) {
		x.message.statement = &x.held.unprotected.statement
		return
	}
	s := &statement{oids: m.oids, text: lettersOf(m.sql)}
	s.gate(&x.session.gate)
	x.message.statement = s
	if s.unseen != captured {
		return
	}
	switch statements := sqltext.Split(string(m.sql)); len(statements) {
	case 0:
	case 1:
		s.sql = statements[0]
		s.effect = x.session.analyze(s.sql, s.text)
	default:
		s.unseen, s.risk = Unreadable, sqltext.Unread // the server accepts only one
	}
}

func (x *extended) bind(body []byte) {
	if x.bindUnprotected(body) {
		return
	}
	m, ok := decodeBind(bytes.Clone(body))
	if !ok {
		return
	}
	x.message.known, x.message.name = true, string(clip(m.portal))
	p := &portal{statement: x.held.statements[string(clip(m.statement))], bytes: entryBytes + len(body), named: len(m.statement) > 0, extended: true}
	x.message.portal = p
	if p.statement == nil {
		return
	}
	for i := range min(len(m.params), len(p.statement.oids)) {
		m.params[i].OID = p.statement.oids[i]
	}
	p.params, p.results, p.ascii = m.params, m.results, asciiParams(m.params)
	p.gate(&x.session.gate)
}

func (s *statement) gate(g *gate) {
	if s.unseen != captured {
		return
	}
	unseen, skip := g.text(s.text)
	if s.unseen = unseen; unseen != captured {
		s.risk = sqltext.Unread
	}
	if skip != captured {
		s.skip = skip
	}
}

func (p *portal) gate(g *gate) {
	if skip := g.params(p.ascii); skip != captured {
		p.skip = skip
	}
}

// regate checks the message, which has this type, again: see simple.regate.
func (x *extended) regate(typ byte) {
	switch {
	case typ == 'P' && x.message.known:
		x.message.statement = x.held.unprotected.own(x.message.statement)
		x.message.statement.gate(&x.session.gate)
	case typ == 'B' && x.message.known:
		x.message.portal.gate(&x.session.gate)
	}
}

func (t *Tracker) answerExtended(r record) bool {
	if r.typ == 'E' {
		t.extended.failed(t.typ, t.out.failure(r))
		t.failed(t.extended.failedEffect(t.typ))
		t.typ, t.skipping = 0, true
		return true
	}
	done := true
	switch {
	case t.typ == 'P' && r.typ == '1':
		t.extended.prepared()
	case t.typ == 'B' && r.typ == '2':
		t.extended.bound()
	case t.typ == 'D' && (r.typ == 'T' || r.typ == 'n'):
	case t.typ == 'C' && r.typ == '3':
		t.extended.closed()
	case t.typ == 'E' && (r.typ == 'C' || r.typ == 's') && !t.copyIn:
		t.extended.executed(r)
	case t.typ == 'E' && r.typ == 'I':
	case t.typ == 'E' && (r.typ == 'G' || r.typ == 'H' || r.typ == 'T'):
		t.copyIn = r.typ == 'G'
		done = false
	default:
		return false
	}
	if done {
		t.typ = 0
	}
	return true
}

// prepared keeps the statement of a Parse that succeeded.
func (x *extended) prepared() {
	if !x.message.known {
		x.held.forgetStatements() // any name may now refer to another statement
		x.held.hides = true
		return
	}
	x.held.remember(x.message.name, x.message.statement)
}

// bound keeps the portal of a Bind that succeeded.
func (x *extended) bound() {
	if !x.message.known {
		x.held.forgetPortals()
		return
	}
	p := x.message.portal
	if p.statement != &x.held.unprotected.statement {
		p.view, p.at = x.session.settings.current(), x.out.now
	}
	x.held.keep(x.message.name, p)
}

func (x *extended) closed() {
	switch {
	case !x.message.known:
		x.held.forgetStatements()
		x.held.forgetPortals()
	case x.message.what == 'S':
		x.held.forgetStatement(x.message.name)
	default:
		x.held.forgetPortal(x.message.name)
	}
}

// executed captures the statement of a portal from which an Execute, completed or suspended at a row limit, has read, if
// the rows are an answer of their own.
func (x *extended) executed(r record) {
	if r.typ == 'C' {
		x.session.completed(r.body)
	}
	if x.executedUnprotected() {
		return
	}
	e, shown := ending{at: x.out.now, outcome: capture.Suspended, stated: x.out.stated}, "SELECT"
	if r.typ == 'C' {
		b, _ := decodeText(r.body)
		e, shown = ending{at: x.out.now, tag: string(b), stated: x.out.stated}, string(b)
	}
	p := x.message.portal
	switch {
	case !x.message.known:
		x.held.missPortals()
		x.session.unseen(NotCopied, shown, sqltext.Unread)
		return
	case p == nil || p.statement == nil:
		p.miss()
		x.session.unseen(UnknownStatement, shown, x.held.unknown.risk())
		return
	}
	before, s := p.read, p.statement
	v, own := p.reads(sqltext.NextRows, x.session.settings.current())
	switch {
	case before || p.cursor:
		if (own || !e.stated.None()) && !executes(s.effect) {
			x.out.capturePortal(p, &e, v, "")
		}
		x.session.settings.apply(sqltext.Effect{Doubt: s.effect.Doubt}, nil, "")
	case s.unseen != captured:
		x.session.unseen(s.unseen, shown, s.risk)
	case executes(s.effect):
		skip := cmp.Or(p.skip, s.skip)
		x.out.captureExecution(x.session.effect(s.effect, p.params, skip, e.tag), skip, e, v)
	case s.effect.Action == sqltext.DeclareCursor: // its query runs when rows are read
		x.session.effect(s.effect, p.params, cmp.Or(p.skip, s.skip), e.tag)
	default:
		x.session.effect(s.effect, p.params, captured, e.tag)
		x.out.capturePortal(p, &e, v, "")
	}
}

// unbound is a portal whose Bind failed, with values or while its statement was planned. If an Execute of it follows,
// the statement was to be run, and the error is its answer.
type unbound struct {
	name   string
	portal *portal
	ending ending
}

// forgetUnbound handles the message behind those that the server ignored.
func (x *extended) forgetUnbound() {
	if p := x.unbound.portal; p != nil {
		x.held.left(p, &x.unbound.ending)
		x.unbound = unbound{}
	}
}

// skipped handles a message that the server ignores after an error.
func (x *extended) skipped(r record) {
	if r.typ != 'E' {
		return
	}
	u := &x.unbound
	name, ok := decodeExecute(r.body)
	if x.message.known = ok; u.portal != nil && ok && string(clip(name)) == u.name {
		x.message.portal = u.portal
		x.fail(u.portal, u.ending, u.portal.view)
	}
}

// failed handles the error of a message of this type, unless it is one of parsing and analysis: of Parse.
func (x *extended) failed(typ byte, e ending) {
	p := x.message.portal
	switch {
	case x.session.refused(e, x.message.known && (p == nil || p.statement == nil || x.held.lacks(p.statement.effect))):
	case typ == 'E':
		if p != nil && p.statement != nil && p.statement.effect.Action == sqltext.Commit {
			x.session.endFailed(e)
		}
		x.fail(p, e, x.session.settings.current())
	case typ == 'B' && x.message.known:
		if p.view == nil && p.statement != &x.held.unprotected.statement {
			p.view = x.session.settings.current()
		}
		x.unbound = unbound{x.message.name, p, e}
	}
}

// fail captures the statement of a portal whose Execute failed under these settings. It has no effect on the session.
func (x *extended) fail(p *portal, e ending, now *view) {
	if x.executedUnprotected() {
		return
	}
	switch {
	case !x.message.known:
		x.held.missPortals()
		x.out.skip(NotCopied, "")
		return
	case p == nil || p.statement == nil:
		p.miss()
		x.out.skip(UnknownStatement, "")
		return
	}
	s := p.statement
	v, own := p.reads(sqltext.NextRows, now)
	switch {
	case !own:
	case s.unseen != captured:
		x.out.skip(s.unseen, "")
	case executes(s.effect) && !p.cursor:
		x.out.captureExecution(x.session.execution(s.effect), cmp.Or(p.skip, s.skip), e, v)
	case s.effect.Action == sqltext.DeclareCursor && !p.cursor && !s.effect.Hold:
		x.out.capturePortal(p, &e, v, "EXPLAIN ") // it was planned
	default:
		x.out.capturePortal(p, &e, v, "")
	}
}

// failedEffect returns the effect that the statement of the current message would have had.
func (x *extended) failedEffect(typ byte) sqltext.Effect {
	p := x.message.portal
	if typ != 'E' || p == nil || p.statement == nil || p.cursor {
		return sqltext.Effect{}
	}
	if p.statement.unseen != captured {
		return unseenEffect(p.statement.risk)
	}
	return x.held.failedEffect(p.statement.effect)
}
