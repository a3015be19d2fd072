package tracker

import (
	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/sqltext"
)

// execution is what an SQL EXECUTE ran: a prepared statement, whichever way it was prepared, and its arguments.
type execution struct {
	statement *statement
	skip      Reason // why it is not captured
	params    []capture.Param
}

// remember keeps a prepared statement; protocol and SQL share one namespace.
func (t *Tracker) remember(name string, s *statement) {
	t.forgetStatement(name)
	if s.unseen != captured || s.effect.Hidden || s.effect.Action != sqltext.None {
		t.preparedSetter = true
	}
	if len(t.statements) >= maxNames {
		return
	}
	if t.heldStatements+s.size() > t.cfg.MaxHeldBytes/2 {
		s = &statement{effect: s.effect, ascii: s.ascii, unseen: s.unseen, skip: NotCopied}
	}
	t.statements[name] = s
	t.heldStatements += s.size()
}

// prepareSQL remembers what PREPARE prepared.
func (t *Tracker) prepareSQL(e sqltext.Effect) {
	s := &statement{sql: e.Statement, oids: e.Types, ascii: ascii([]byte(e.Statement))}
	s.gate(&t.gate)
	if s.unseen == captured {
		s.effect = sqltext.Analyze(s.sql)
		if !e.Plain {
			s.skip = Arguments // the parameters' types are not known
		}
	}
	t.remember(e.Name, s)
}

// executeSQL does what EXECUTE did to the session, and says what it was.
func (t *Tracker) executeSQL(e sqltext.Effect, tag string) execution {
	s := t.statements[e.Name]
	switch {
	case s == nil:
		t.settings.poison()
		t.gate.change()
		return execution{skip: UnknownStatement}
	case s.unseen != captured:
		t.settings.poison()
		t.gate.change()
		return execution{skip: s.unseen}
	case s.effect.Action == sqltext.Execute: // one within another: the server has no such
		t.settings.poison()
		return execution{skip: Unreadable}
	}
	t.effect(s.effect, tag)
	x := execution{statement: s, skip: s.skip}
	if x.skip == captured {
		x.bind(e)
	}
	return x
}

// bind turns the arguments of EXECUTE into parameters, text all of them.
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

// captureExecution emits the prepared statement of an EXECUTE that completed, as if the extended protocol had
// brought it. Skip is why the EXECUTE itself is not captured.
func (t *Tracker) captureExecution(x execution, skip Reason, c completion) {
	switch {
	case skip != captured:
	case x.skip != captured:
		skip = x.skip
	case x.statement.sql == "":
		return
	case len(x.statement.sql) > t.cfg.MaxStatementBytes:
		skip = TooLong
	case !t.interesting(x.statement.sql):
		skip = Unprotected
	}
	if skip != captured {
		t.cfg.Counts.Skipped[skip]++
		return
	}
	hidden := x.statement.effect.Hidden || x.statement.effect.Action == sqltext.Unclear
	t.capture(capture.Query{
		SQL: x.statement.sql, Protocol: capture.Extended, Named: true, Params: x.params, Tag: c.tag, Completed: c.at,
	}, c.view, hidden)
}
