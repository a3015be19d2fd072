package tracker

import (
	"slices"

	"github.com/dpwatch/dpwatch/internal/sqltext"
)

// held are the prepared statements and portals of the session.
type held struct {
	cfg            *Config
	out            *emitter
	statements     map[string]*statement
	portals        map[string]*portal
	statementBytes int
	portalBytes    int
	holds          int  // portals WITH HOLD
	setter         bool // a prepared statement can change settings
	hides          bool // one can do so in a way that its command tag does not show
	unknown        unknown
	unprotected    unprotected
}

// remember keeps a prepared statement. Protocol and SQL share one namespace.
func (h *held) remember(name string, s *statement) {
	h.forgetStatement(name)
	if s.unseen != captured || !s.effect.Inert() {
		h.setter = true
	}
	h.hides = h.hides || s.hides()
	if len(h.statements) >= maxNames {
		h.unknown.add(s.hides())
		return
	}
	if h.statementBytes+s.size() > h.cfg.MaxHeldBytes/2 {
		s = &statement{effect: s.effect, text: s.text, unseen: s.unseen, risk: s.risk, skip: NotCopied}
	}
	h.statements[name] = s
	h.statementBytes += s.size()
}

// execution returns what an EXECUTE executes.
func (h *held) execution(e sqltext.Effect) execution {
	s := h.statements[e.Name]
	switch {
	case s == nil:
		return execution{skip: UnknownStatement}
	case s.unseen != captured:
		return execution{skip: s.unseen}
	case s.effect.Action == sqltext.Execute: // a nested EXECUTE, which PostgreSQL does not have
		return execution{skip: Unreadable}
	}
	return newExecution(s, e)
}

// failedEffect returns the effect of a failed statement: for EXECUTE, of the prepared statement.
func (h *held) failedEffect(e sqltext.Effect) sqltext.Effect {
	if e.Action != sqltext.Execute {
		return e
	}
	s := h.statements[e.Name]
	switch {
	case s == nil:
		return sqltext.Effect{}
	case s.unseen != captured:
		return unseenEffect(s.risk)
	}
	return s.effect
}

func (h *held) forgetStatement(name string) {
	if s, ok := h.statements[name]; ok {
		h.statementBytes -= s.size()
		delete(h.statements, name)
	}
}

func (h *held) forgetPortal(name string) {
	if p, ok := h.portals[name]; ok {
		if !p.read {
			h.left(p, &ending{at: p.at})
		}
		if p.hold {
			h.holds--
		}
		h.portalBytes -= p.bytes
		h.unprotected.spared(p)
		delete(h.portals, name)
	}
}

// losePlaceholders handles a new temporary relation that matters: the unprotected statements, whose texts were not kept,
// may name it.
func (h *held) losePlaceholders() {
	for name, s := range h.statements {
		if s == &h.unprotected.statement {
			h.statements[name] = &statement{skip: UnknownStatement}
		}
	}
}

func (h *held) forgetStatements() {
	for name := range h.statements {
		h.forgetStatement(name)
	}
}

func (h *held) forgetPortals() { h.forgetPortalsBut(false) }

// forgetPortalsBut forgets all portals, or all but those whose rows the server keeps.
func (h *held) forgetPortalsBut(stored bool) {
	var unread []string
	for name, p := range h.portals {
		switch {
		case stored && p.stored != nil:
		case !p.read && !p.missed && p.statement != &h.unprotected.statement: // they are captured in a fixed order
			unread = append(unread, name)
		default:
			h.forgetPortal(name)
		}
	}
	slices.Sort(unread)
	for _, name := range unread {
		h.forgetPortal(name)
	}
}

// missPortals handles an Execute of a portal that is not known: it counts.
func (h *held) missPortals() {
	for _, p := range h.portals {
		p.miss()
	}
}

// left captures the statement of a portal of which nothing was read, and which ended so, as EXPLAIN of it: the server
// has only planned it.
func (h *held) left(p *portal, e *ending) {
	switch s := p.statement; {
	case p.read, p.missed:
	case s == nil:
		h.out.skip(UnknownStatement, "")
	case s.unseen != captured:
		h.out.skip(s.unseen, "")
	case s == &h.unprotected.statement || p.cursor || sqltext.IsPlanned(s.sql):
		h.out.capturePortal(p, e, p.view, "EXPLAIN ")
	}
}

// lacks reports whether a statement with this effect names a prepared statement or cursor that is not held.
func (h *held) lacks(e sqltext.Effect) bool {
	switch e.Action {
	case sqltext.Execute, sqltext.ExecuteWithin, sqltext.Deallocate:
		return h.statements[e.Name] == nil
	case sqltext.Fetch, sqltext.CloseCursor:
		return h.portals[e.Name] == nil
	}
	return false
}
