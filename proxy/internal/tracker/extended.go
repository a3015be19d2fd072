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

func (t *Tracker) beginExtended(r record) {
	if r.cut {
		t.beginCut(r)
		return
	}
	switch r.typ {
	case 'P':
		t.beginParse(r.body)
	case 'B':
		t.beginBind(r.body)
	case 'E':
		var name []byte
		if name, t.ext.known = decodeExecute(r.body); t.ext.known {
			t.ext.portal = t.portals[string(clip(name))]
		}
	case 'C':
		var name []byte
		t.ext.what, name, t.ext.known = decodeClose(r.body)
		t.ext.name = string(clip(name))
	}
}

// beginCut reads the names at the beginning of a truncated Parse or Bind message.
func (t *Tracker) beginCut(r record) {
	b := reader{b: r.body}
	name := string(clip(b.cstring()))
	switch r.typ {
	case 'P':
		t.ext.statement = &statement{unseen: NotCopied, risk: r.risk}
		if name == "" {
			t.forgetStatement("")
		}
	case 'B':
		t.ext.portal = &portal{statement: t.statements[string(clip(b.cstring()))], skip: NotCopied, bytes: entryBytes}
	default:
		return
	}
	t.ext.known, t.ext.name = !b.bad, name
}

func (t *Tracker) beginParse(body []byte) {
	m, ok := decodeParse(body)
	if !ok {
		return
	}
	t.ext.known, t.ext.name = true, string(clip(m.name))
	if t.ext.name == "" {
		t.forgetStatement("") // it is destroyed even if the new one fails
	}
	if t.unprotectedStatement(m.sql) {
		t.ext.statement = &t.unprotected.statement
		return
	}
	s := &statement{oids: m.oids, text: lettersOf(m.sql)}
	s.gate(&t.gate)
	t.ext.statement = s
	if s.unseen != captured {
		return
	}
	switch statements := sqltext.Split(string(m.sql)); len(statements) {
	case 0:
	case 1:
		s.sql = statements[0]
		s.effect = t.analyze(s.sql, s.text)
	default:
		s.unseen, s.risk = Unreadable, sqltext.Unread // the server accepts only one
	}
}

func (t *Tracker) beginBind(body []byte) {
	if t.bindUnprotected(body) {
		return
	}
	m, ok := decodeBind(bytes.Clone(body))
	if !ok {
		return
	}
	t.ext.known, t.ext.name = true, string(clip(m.portal))
	p := &portal{statement: t.statements[string(clip(m.statement))], bytes: entryBytes + len(body), named: len(m.statement) > 0}
	t.ext.portal = p
	if p.statement == nil {
		return
	}
	for i := range min(len(m.params), len(p.statement.oids)) {
		m.params[i].OID = p.statement.oids[i]
	}
	p.params, p.results, p.ascii = m.params, m.results, asciiParams(m.params)
	p.gate(&t.gate)
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

func (t *Tracker) answerExtended(r record) bool {
	if r.typ == 'E' {
		if e := t.failure(r); e.ran(true) {
			switch {
			case t.typ == 'E':
				t.failExtended(t.ext.portal, e)
			case t.typ == 'B' && t.ext.known:
				t.unbound = unbound{t.ext.name, t.ext.portal, e}
			}
		}
		t.failed(t.failedExtended())
		t.typ, t.skipping = 0, true
		return true
	}
	done := true
	switch {
	case t.typ == 'P' && r.typ == '1':
		t.prepared()
	case t.typ == 'B' && r.typ == '2':
		t.bound()
	case t.typ == 'D' && (r.typ == 'T' || r.typ == 'n'):
	case t.typ == 'C' && r.typ == '3':
		t.closed()
	case t.typ == 'E' && (r.typ == 'C' || r.typ == 's') && !t.copyIn:
		t.executed(r)
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
func (t *Tracker) prepared() {
	if !t.ext.known {
		t.forgetStatements() // any name may now refer to another statement
		t.preparedHides = true
		return
	}
	t.remember(t.ext.name, t.ext.statement)
}

// bound keeps the portal of a Bind that succeeded.
func (t *Tracker) bound() {
	if !t.ext.known {
		t.forgetPortals()
		return
	}
	t.forgetPortal(t.ext.name)
	p := t.ext.portal
	if len(t.portals) >= maxNames {
		t.unknown.add(p.statement == nil || p.statement.hides())
		return
	}
	if t.heldPortals+p.bytes > t.cfg.MaxHeldBytes/2 {
		p = &portal{statement: p.statement, skip: NotCopied, bytes: entryBytes}
	}
	if p.statement != &t.unprotected.statement {
		p.view = t.settings.current()
	}
	t.portals[t.ext.name] = p
	t.heldPortals += p.bytes
}

func (t *Tracker) closed() {
	switch {
	case !t.ext.known:
		t.forgetStatements()
		t.forgetPortals()
	case t.ext.what == 'S':
		t.forgetStatement(t.ext.name)
	default:
		t.forgetPortal(t.ext.name)
	}
}

// executed captures the statement of a portal at its first Execute, completed or suspended at a row limit.
func (t *Tracker) executed(r record) {
	if t.executedUnprotected() {
		return
	}
	e, shown := ending{at: t.now, outcome: capture.Suspended}, "SELECT"
	if r.typ == 'C' {
		b, _ := decodeText(r.body)
		e, shown = ending{at: t.now, tag: string(b)}, string(b)
	}
	p := t.ext.portal
	switch {
	case !t.ext.known:
		t.unseen(NotCopied, shown, sqltext.Unread)
		return
	case p == nil || p.statement == nil:
		t.unseen(UnknownStatement, shown, t.unknown.risk())
		return
	case p.done:
		t.settings.apply(sqltext.Effect{Doubt: p.statement.effect.Doubt}, nil, "")
		return
	}
	p.done = true
	s := p.statement
	if s.unseen != captured {
		t.unseen(s.unseen, shown, s.risk)
		return
	}
	v := t.settings.current()
	if executes(s.effect) {
		t.captureExecution(t.effect(s.effect, p.params, e.tag), cmp.Or(p.skip, s.skip), e, v)
		return
	}
	t.effect(s.effect, p.params, e.tag)
	t.captureExtended(p, &e, v)
}

// unbound is a portal whose Bind failed, with values or while its statement was planned. If an Execute of it follows,
// the statement was to be run, and the error is its answer.
type unbound struct {
	name   string
	portal *portal
	ending ending
}

// skipped handles a message that the server ignores after an error.
func (t *Tracker) skipped(r record) {
	switch r.typ {
	case 'Q', 'F':
		t.ignored.Skipped++
	case 'E':
		u := &t.unbound
		name, ok := decodeExecute(r.body)
		if t.ext.known = ok; u.portal != nil && ok && string(clip(name)) == u.name {
			t.ext.portal = u.portal
			t.failExtended(u.portal, u.ending)
		}
	}
}

// failExtended captures the statement of a portal whose first Execute failed. It has no effect on the session.
func (t *Tracker) failExtended(p *portal, e ending) {
	if t.executedUnprotected() {
		return
	}
	switch {
	case !t.ext.known:
		t.skip(NotCopied, "")
		return
	case p == nil || p.statement == nil:
		t.skip(UnknownStatement, "")
		return
	case p.done:
		return
	}
	p.done = true
	s := p.statement
	if s.unseen != captured {
		t.skip(s.unseen, "")
		return
	}
	v := t.settings.current()
	if executes(s.effect) {
		t.captureExecution(t.execution(s.effect), cmp.Or(p.skip, s.skip), e, v)
		return
	}
	t.captureExtended(p, &e, v)
}

func (t *Tracker) captureExtended(p *portal, e *ending, v *view) {
	s := p.statement
	skip := p.skip
	switch {
	case s.skip != captured:
		skip = s.skip
	case len(s.sql) > t.cfg.MaxStatementBytes:
		skip = TooLong
	case skip == captured && !t.maybeProtected(s.sql):
		skip = Unprotected
	}
	if skip != captured {
		t.skip(skip, s.sql)
		return
	}
	own := ownDoubt(s.effect).Add(p.view.since(v)) // names were resolved at Bind
	t.capture(capture.Query{
		SQL: s.sql, Protocol: capture.Extended, Named: p.named, Params: p.params, ResultFormats: p.results,
	}, e, v, own)
	p.params, p.results = nil, nil // now owned by the query
}

// failedExtended returns the effect that the statement of the current message would have had.
func (t *Tracker) failedExtended() sqltext.Effect {
	p := t.ext.portal
	if t.typ != 'E' || p == nil || p.statement == nil {
		return sqltext.Effect{}
	}
	if p.statement.unseen != captured {
		return unseenEffect(p.statement.risk)
	}
	return t.failedEffect(p.statement.effect)
}

func (t *Tracker) forgetStatement(name string) {
	if s, ok := t.statements[name]; ok {
		t.heldStatements -= s.size()
		delete(t.statements, name)
	}
}

func (t *Tracker) forgetPortal(name string) {
	if p, ok := t.portals[name]; ok {
		t.heldPortals -= p.bytes
		t.unprotected.spared(p)
		delete(t.portals, name)
	}
}

func (t *Tracker) forgetStatements() {
	for name := range t.statements {
		t.forgetStatement(name)
	}
}

func (t *Tracker) forgetPortals() {
	for name := range t.portals {
		t.forgetPortal(name)
	}
}
