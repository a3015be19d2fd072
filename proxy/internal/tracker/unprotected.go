package tracker

import (
	"unsafe"

	"github.com/dpwatch/dpwatch/internal/sqltext"
)

// unprotected holds the state for unprotected statements, which are neither interesting (Config.MaybeProtected) nor
// change the session. One placeholder represents those without a name, so that neither their texts nor their parameters
// are copied. They are most of the traffic in front of a database that holds more than protected tables.
type unprotected struct {
	statement statement // the placeholder for every unprotected statement without a name; never changed
	spare     *portal   // a portal of an unprotected statement, for reuse
}

// unprotectedQuery reports whether a simple query, whose text passed the gate, is unprotected, and its number of
// statements. once: it runs now, and not again.
func (sess *session) unprotectedQuery(text []byte, skip Reason, once bool) (statements int, ok bool) {
	if sess.cfg.MaybeProtected == nil || skip != captured || sess.ownCode {
		return 0, false
	}
	sql := unsafe.String(unsafe.SliceData(text), len(text)) // the record outlives this call
	if sess.settings.mayMatter(sql) {
		return 0, false
	}
	split := sqltext.NewSplitter(sql)
	for statement, more := split.Next(); more; statement, more = split.Next() {
		e := sqltext.Analyze(statement)
		if statements++; statements > maxStatements || !e.Inert() && (!once || !sess.settings.recorded(e)) {
			return 0, false
		}
	}
	return statements, true
}

// unprotectedStatement returns the statement of a Parse message that is unprotected, otherwise nil. Text that the gate
// rejects never is, because its content is unknown. A statement with a name keeps its text: it may be executed when its
// names mean something else.
func (x *extended) unprotectedStatement(m *parseMessage) *statement {
	if x.cfg.MaybeProtected == nil {
		return nil
	}
	if unseen, skip := x.session.gate.text(lettersOf(m.sql)); unseen != captured || skip != captured {
		return nil
	}
	edition := x.cfg.Definitions.Edition()
	if n, ok := x.session.unprotectedQuery(m.sql, captured, false); n != 1 || !ok {
		return nil
	}
	x.held.unprotected.statement.skip = Unprotected
	if len(m.name) == 0 || x.held.statementBytes+entryBytes+len(m.sql)+4*len(m.oids) > x.cfg.MaxHeldBytes/2 {
		return &x.held.unprotected.statement
	}
	return &statement{sql: string(m.sql), oids: m.oids, skip: Unprotected, checked: edition}
}

// still reports whether a statement is unprotected. If names mean something else since its text was checked, the text is
// checked again, and the statement becomes one to capture if that fails.
func (x *extended) still(s *statement) bool {
	if !x.held.unprotected.is(s) || s.checked == 0 {
		return x.held.unprotected.is(s)
	}
	edition := x.cfg.Definitions.Edition()
	if s.checked == edition && len(x.session.settings.now.temps.names) == 0 {
		return true
	}
	if _, ok := x.session.unprotectedQuery([]byte(s.sql), captured, false); ok {
		s.checked = edition
		return true
	}
	s.checked, s.skip, s.text = 0, captured, lettersOf([]byte(s.sql))
	s.effect = x.session.analyze(s.sql, s.text)
	return false
}

// bindUnprotected begins a Bind message of an unprotected statement and skips its parameters; false for other
// statements.
func (x *extended) bindUnprotected(body []byte) bool {
	r := reader{b: body}
	name, of := r.cstring(), r.cstring()
	s := x.held.statements[string(clip(of))]
	if r.bad || !x.still(s) {
		return false
	}
	p := x.held.unprotected.spare
	x.held.unprotected.spare = nil
	if p == nil {
		p = new(portal)
	}
	*p = portal{statement: s, bytes: entryBytes}
	x.message.known, x.message.name, x.message.portal = true, string(clip(name)), p
	return true
}

// executedUnprotected counts the first Execute of an unprotected statement's portal; false for other portals.
func (x *extended) executedUnprotected() bool {
	p := x.message.portal
	if !x.message.known || p == nil || !x.held.unprotected.is(p.statement) {
		return false
	}
	if x.session.ownCode {
		x.session.settings.begin()
		x.session.settings.doubtAll()
	}
	if !p.read {
		p.read = true
		x.cfg.Counts.Skipped[Unprotected]++
	}
	return true
}

// is reports whether a statement is an unprotected one.
func (d *unprotected) is(s *statement) bool {
	return s == &d.statement || s != nil && s.checked > 0 && s.skip == Unprotected && s.unseen == captured
}

// own returns s, or a new statement if s is the shared placeholder, which must not be changed.
func (d *unprotected) own(s *statement) *statement {
	if s != &d.statement {
		return s
	}
	return &statement{skip: Unprotected}
}

// spared keeps a discarded portal for reuse. Nothing refers to it once the next Bind message begins.
func (d *unprotected) spared(p *portal) {
	if d.is(p.statement) {
		d.spare = p
	}
}
