package tracker

import "github.com/dpwatch/dpwatch/internal/sqltext"

// held are the prepared statements and portals of the session.
type held struct {
	cfg            *Config
	statements     map[string]*statement
	portals        map[string]*portal
	statementBytes int
	portalBytes    int
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

func (h *held) forgetPortals() {
	for name := range h.portals {
		h.forgetPortal(name)
	}
}
