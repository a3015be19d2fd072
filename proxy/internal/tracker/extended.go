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

	checked uint64 // the Edition of Config.Definitions for which the text was found to be unprotected; 0 = it was not
}

// hides reports whether the statement can change settings in a way that its command tag does not show.
func (s *statement) hides() bool {
	return s.effect.Doubt.Any || len(s.effect.Doubt.Names)+len(s.effect.Assignments) > 0 || s.unseen != captured && s.risk&sqltext.RiskSettings != 0
}

func (s *statement) size() int { return entryBytes + len(s.sql) + 4*len(s.oids) }

// portal is a statement with its parameters. It keeps the statement that it was bound to, even if the statement's name
// is reused.
type portal struct {
	statement *statement // nil if unknown
	params    []capture.Param
	results   []int16
	ascii     bool
	named     bool   // created from a named statement
	skip      Reason // why it is not captured
	bytes     int
	done      bool  // executed; a portal is captured once
	view      *view // the settings at Bind, with which the server resolved names
}

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
		x.message.portal = &portal{statement: x.held.statements[string(clip(b.cstring()))], skip: NotCopied, bytes: entryBytes}
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
	if x.message.statement = x.unprotectedStatement(&m); x.message.statement != nil {
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
	p := &portal{statement: x.held.statements[string(clip(m.statement))], bytes: entryBytes + len(body), named: len(m.statement) > 0}
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
		if e := t.out.failure(r); e.ran(true) {
			switch {
			case t.typ == 'E':
				t.extended.fail(t.extended.message.portal, e)
			case t.typ == 'B' && t.extended.message.known:
				t.extended.unbound = unbound{t.extended.message.name, t.extended.message.portal, e}
			}
		}
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
	x.held.forgetPortal(x.message.name)
	p := x.message.portal
	if len(x.held.portals) >= maxNames {
		x.held.unknown.add(p.statement == nil || p.statement.hides())
		return
	}
	if x.held.portalBytes+p.bytes > x.cfg.MaxHeldBytes/2 {
		p = &portal{statement: p.statement, skip: NotCopied, bytes: entryBytes}
	}
	if !x.held.unprotected.is(p.statement) {
		p.view = x.session.settings.current()
	}
	x.held.portals[x.message.name] = p
	x.held.portalBytes += p.bytes
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

// executed captures the statement of a portal at its first Execute, completed or suspended at a row limit.
func (x *extended) executed(r record) {
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
		x.session.unseen(NotCopied, shown, sqltext.Unread)
		return
	case p == nil || p.statement == nil:
		x.session.unseen(UnknownStatement, shown, x.held.unknown.risk())
		return
	case p.done:
		x.session.settings.apply(sqltext.Effect{Doubt: p.statement.effect.Doubt}, nil, "")
		return
	}
	p.done = true
	s := p.statement
	if s.unseen != captured {
		x.session.unseen(s.unseen, shown, s.risk)
		return
	}
	v := x.session.settings.current()
	if executes(s.effect) {
		x.out.captureExecution(x.session.effect(s.effect, p.params, e.tag), cmp.Or(p.skip, s.skip), e, v)
		return
	}
	x.session.effect(s.effect, p.params, e.tag)
	x.out.captureExtended(p, &e, v)
}

// unbound is a portal whose Bind failed, with values or while its statement was planned. If an Execute of it follows,
// the statement was to be run, and the error is its answer.
type unbound struct {
	name   string
	portal *portal
	ending ending
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
		x.fail(u.portal, u.ending)
	}
}

// failExtended captures the statement of a portal whose first Execute failed. It has no effect on the session.
func (x *extended) fail(p *portal, e ending) {
	if x.executedUnprotected() {
		return
	}
	switch {
	case !x.message.known:
		x.out.skip(NotCopied, "")
		return
	case p == nil || p.statement == nil:
		x.out.skip(UnknownStatement, "")
		return
	case p.done:
		return
	}
	p.done = true
	s := p.statement
	if s.unseen != captured {
		x.out.skip(s.unseen, "")
		return
	}
	v := x.session.settings.current()
	if executes(s.effect) {
		x.out.captureExecution(x.held.execution(s.effect), cmp.Or(p.skip, s.skip), e, v)
		return
	}
	x.out.captureExtended(p, &e, v)
}

// failedExtended returns the effect that the statement of the current message would have had.
func (x *extended) failedEffect(typ byte) sqltext.Effect {
	p := x.message.portal
	if typ != 'E' || p == nil || p.statement == nil {
		return sqltext.Effect{}
	}
	if p.statement.unseen != captured {
		return unseenEffect(p.statement.risk)
	}
	return x.held.failedEffect(p.statement.effect)
}
