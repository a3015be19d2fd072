package tracker

import (
	"unsafe"

	"github.com/dpwatch/dpwatch/internal/sqltext"
)

// unprotected holds the state for unprotected statements, which are neither interesting (Config.MaybeProtected) nor
// change the session. One placeholder represents all of them, so that neither their texts nor their parameters are
// copied. They are most of the traffic in front of a database that holds more than protected tables.
type unprotected struct {
	statement statement // the placeholder for every unprotected prepared statement; never changed
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

// unprotectedStatement reports whether the statement of a Parse message is unprotected. Text that the gate rejects
// never is, because its content is unknown.
func (x *extended) unprotectedStatement(text []byte) bool {
	if x.cfg.MaybeProtected == nil {
		return false
	}
	if unseen, skip := x.session.gate.text(lettersOf(text)); unseen != captured || skip != captured {
		return false
	}
	n, ok := x.session.unprotectedQuery(text, captured, false)
	if n != 1 || !ok {
		return false
	}
	x.held.unprotected.statement.skip = Unprotected
	return true
}

// bindUnprotected begins a Bind message of an unprotected statement and skips its parameters; false for other
// statements.
func (x *extended) bindUnprotected(body []byte) bool {
	r := reader{b: body}
	name, of := r.cstring(), r.cstring()
	if r.bad || x.held.statements[string(clip(of))] != &x.held.unprotected.statement {
		return false
	}
	p := x.held.unprotected.spare
	x.held.unprotected.spare = nil
	if p == nil {
		p = new(portal)
	}
	*p = portal{statement: &x.held.unprotected.statement, bytes: entryBytes}
	x.message.known, x.message.name, x.message.portal = true, string(clip(name)), p
	return true
}

// executedUnprotected counts the first Execute of an unprotected statement's portal; false for other portals.
func (x *extended) executedUnprotected() bool {
	p := x.message.portal
	if !x.message.known || p == nil || p.statement != &x.held.unprotected.statement {
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

// own returns s, or a new statement if s is the shared placeholder, which must not be changed.
func (d *unprotected) own(s *statement) *statement {
	if s != &d.statement {
		return s
	}
	return &statement{skip: Unprotected}
}

// spared keeps a discarded portal for reuse. Nothing refers to it once the next Bind message begins.
func (d *unprotected) spared(p *portal) {
	if p.statement == &d.statement {
		d.spare = p
	}
}
