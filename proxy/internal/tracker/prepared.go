package tracker

import (
	"slices"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/sqltext"
)

// execution is the prepared statement that an SQL EXECUTE ran, and its arguments. The statement can come from SQL or
// the protocol.
type execution struct {
	before    string // the text before an EXECUTE within another statement
	statement *statement
	skip      Reason // why it is not captured
	params    []capture.Param
}

// remember keeps a prepared statement. Protocol and SQL share one namespace.
func (t *Tracker) remember(name string, s *statement) {
	t.forgetStatement(name)
	if s.unseen != captured || !s.effect.Inert() {
		t.preparedSetter = true
	}
	t.preparedHides = t.preparedHides || s.hides()
	if len(t.statements) >= maxNames {
		t.unknown.add(s.hides())
		return
	}
	if t.heldStatements+s.size() > t.cfg.MaxHeldBytes/2 {
		s = &statement{effect: s.effect, text: s.text, unseen: s.unseen, risk: s.risk, skip: NotCopied}
	}
	t.statements[name] = s
	t.heldStatements += s.size()
}

// prepareSQL keeps the statement of a PREPARE.
func (t *Tracker) prepareSQL(e sqltext.Effect) {
	s := &statement{sql: e.Statement, oids: e.Types, text: lettersOf([]byte(e.Statement))}
	s.gate(&t.gate)
	if s.unseen == captured {
		s.effect = t.analyze(s.sql, s.text)
		if !e.Plain {
			s.skip = Arguments // the parameters' types are unknown
		}
	}
	t.remember(e.Name, s)
}

// executeSQL applies the effect of an EXECUTE to the session and returns what was executed.
func (t *Tracker) executeSQL(e sqltext.Effect, tag string) execution {
	switch s := t.statements[e.Name]; {
	case s == nil:
		t.risk(t.unknown.risk() | sqltext.TagRisk(tag))
	case s.unseen != captured:
		t.risk(s.risk | sqltext.TagRisk(tag))
	case s.effect.Action == sqltext.Execute:
		t.settings.poison()
	default:
		x := newExecution(s, e)
		t.effect(s.effect, x.params, tag)
		return x
	}
	return t.execution(e)
}

// executes reports whether a statement is an EXECUTE, or has one within.
func executes(e sqltext.Effect) bool {
	return e.Action == sqltext.Execute || e.Action == sqltext.ExecuteWithin && e.Name != ""
}

// mayChange returns what the statement can change if it is run within another one, which may not run it.
func (s *statement) mayChange() sqltext.Doubt {
	d := s.effect.Doubt
	for _, a := range s.effect.Assignments {
		if a.Name.Param > 0 {
			d.Any = true
		} else {
			d.Names = append(slices.Clip(d.Names), sqltext.Lower(a.Name.Value))
		}
	}
	return d
}

// execution returns what an EXECUTE executes.
func (t *Tracker) execution(e sqltext.Effect) execution {
	s := t.statements[e.Name]
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

func newExecution(s *statement, e sqltext.Effect) execution {
	x := execution{before: e.Before, statement: s, skip: s.skip}
	if x.skip == captured {
		x.bind(e)
	}
	return x
}

// bind turns the arguments of EXECUTE into parameters in text format.
func (x *execution) bind(e sqltext.Effect) {
	if !e.Plain || len(x.statement.oids) > len(e.Args) {
		x.skip = Arguments
		return
	}
	for i, a := range e.Args {
		p := capture.Param{Null: a.Null}
		if i < len(x.statement.oids) {
			p.OID = x.statement.oids[i]
		}
		value, ok := a.As(p.OID)
		if !ok {
			x.params, x.skip = nil, Arguments
			return
		}
		if !a.Null {
			p.Value = []byte(value)
		}
		x.params = append(x.params, p)
	}
}

// captureExecution emits the prepared statement of a completed EXECUTE, as if it had come through the extended
// protocol. Skip is why the EXECUTE itself is not captured.
func (t *Tracker) captureExecution(x execution, skip Reason, e ending, v *view) {
	switch {
	case skip != captured:
	case x.skip != captured:
		skip = x.skip
	case x.statement.sql == "":
		return
	case len(x.before)+len(x.statement.sql) > t.cfg.MaxStatementBytes:
		skip = TooLong
	case !t.maybeProtected(x.statement.sql):
		skip = Unprotected
	}
	if skip != captured {
		text := ""
		if x.statement != nil {
			text = x.statement.sql
		}
		t.skip(skip, text)
		return
	}
	t.capture(capture.Query{
		SQL: x.before + x.statement.sql, Protocol: capture.Extended, Named: true, Params: x.params,
	}, &e, v, ownDoubt(x.statement.effect))
}
