package tracker

import (
	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/sqltext"
)

// session is what completed statements changed in the session: its settings, and what they may have changed.
type session struct {
	cfg      *Config
	out      *emitter
	held     *held
	settings settings
	ownCode  bool          // the session created a function that may change settings
	cursors  sqltext.Doubt // what running its cursors can change
	gate     gate
}

// effect applies the effect of a completed statement, which had these parameters, to the session. Skip is why the
// statement itself is not captured. The result is set for EXECUTE and FETCH.
func (sess *session) effect(e sqltext.Effect, params []capture.Param, skip Reason, tag string) (ran execution) {
	if sess.ownCode && runsCode(e) {
		sess.settings.begin()
		sess.settings.doubtAll()
	}
	if e.Inert() {
		return ran
	}
	switch e.Action {
	case sqltext.Fetch:
		ran = sess.held.fetched(e, sess.settings.current())
	case sqltext.Commit:
		sess.endTransaction(tag != "ROLLBACK")
	case sqltext.Rollback:
		sess.endTransaction(false)
	}
	changes, doubt := sess.assignments(e.Assignments, params)
	if doubt {
		e.Doubt.Any = true
	}
	defined := sess.settings.now.temps.defined
	sess.settings.apply(e, changes, tag)
	if sess.settings.now.temps.defined > defined {
		sess.held.losePlaceholders()
	}
	sess.gate.effect(e, changes)
	sess.ownCode = sess.ownCode || e.Defines
	switch e.Action {
	case sqltext.Prepare:
		sess.prepareSQL(e)
	case sqltext.Execute:
		ran = sess.executeSQL(e, tag)
	case sqltext.ExecuteWithin:
		if ran = sess.held.execution(e); ran.statement != nil {
			sess.settings.apply(sqltext.Effect{Doubt: ran.statement.mayChange()}, nil, tag)
		} else if sess.held.setter {
			sess.settings.doubtAll()
		}
	case sqltext.Deallocate:
		if e.Name == "" {
			sess.held.forgetStatements()
		} else {
			sess.held.forgetStatement(e.Name)
		}
	case sqltext.DeclareCursor:
		if sess.cursors = sess.cursors.With(e.Doubt); len(sess.cursors.Calls)+len(sess.cursors.Names) > maxCalls {
			sess.cursors = sqltext.Doubt{Any: true}
		}
		sess.declare(e, params, skip)
	case sqltext.CloseCursor:
		if e.Name == "" {
			sess.held.forgetPortals()
		} else {
			sess.held.forgetPortal(e.Name)
		}
	case sqltext.Fetch, sqltext.Commit: // of a cursor WITH HOLD
		sess.settings.apply(sqltext.Effect{Doubt: sess.cursors}, nil, "")
	case sqltext.DiscardAll:
		sess.ownCode, sess.cursors = false, sqltext.Doubt{}
		sess.held.forgetStatements()
		sess.held.forgetPortals()
	case sqltext.Unclear:
		sess.held.forgetStatements()
		sess.held.forgetPortals()
	}
	return ran
}

// execution returns what a statement runs that the session holds.
func (sess *session) execution(e sqltext.Effect) execution {
	if e.Action == sqltext.Fetch {
		return sess.held.fetched(e, sess.settings.current())
	}
	return sess.held.execution(e)
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
func (sess *session) unseen(reason Reason, tag string, words sqltext.Risk) {
	sess.out.skip(reason, "")
	sess.risk(words | sqltext.TagRisk(tag))
	switch tag {
	case "BEGIN", "START TRANSACTION":
		sess.settings.apply(sqltext.Effect{Action: sqltext.Begin}, nil, tag)
	case "COMMIT":
		sess.settings.apply(sqltext.Effect{Action: sqltext.Commit}, nil, tag)
	case "ROLLBACK": // or ROLLBACK TO SAVEPOINT: then the transaction status contradicts
		sess.settings.apply(sqltext.Effect{Action: sqltext.Rollback}, nil, tag)
	}
}

// completed notes what a statement with this command tag may have run besides what its text calls. It is not the effect
// of the statement.
func (sess *session) completed(tag []byte) {
	if !writes(tag) {
		return
	}
	if _, noted := sess.settings.now.doubts.calls[capture.ImplicitCode]; !noted {
		sess.settings.begin()
		sess.settings.doubt(sqltext.Doubt{Calls: []string{capture.ImplicitCode}})
	}
}

// writes reports whether a command tag is that of a statement that can fire triggers or evaluate defaults.
func writes(tag []byte) bool {
	if len(tag) < 4 {
		return false
	}
	switch string(tag[:4]) {
	case "INSE", "UPDA", "DELE", "MERG", "COPY", "TRUN", "CREA", "ALTE", "DROP", "REFR":
		return true
	}
	return false
}

// reported handles a ParameterStatus message.
func (sess *session) reported(r record) {
	sess.gate.report(r.body, !r.cut)
	sess.settings.report(r.body, !r.cut)
}

// risk makes uncertain what statements with this risk may have changed. They may have called any function.
func (sess *session) risk(r sqltext.Risk) {
	sess.settings.doubt(sqltext.Doubt{Calls: []string{capture.UnlistedFunctions}})
	if r&sqltext.RiskCode != 0 {
		sess.ownCode = true
		sess.settings.doubtAll()
	}
	if r&sqltext.RiskSettings != 0 {
		sess.settings.poison()
		sess.gate.change()
		sess.held.setter = true
	}
	if r&sqltext.RiskNames != 0 {
		sess.held.forgetStatements()
		sess.held.forgetPortals()
	}
	if r&sqltext.RiskTemps != 0 || r&sqltext.RiskRenames != 0 && len(sess.settings.now.temps.names) > 0 {
		sess.settings.loseTemps()
	}
}

// prepareSQL keeps the statement of a PREPARE.
func (sess *session) prepareSQL(e sqltext.Effect) {
	s := &statement{sql: e.Statement, oids: e.Types, text: lettersOf([]byte(e.Statement))}
	s.gate(&sess.gate)
	if s.unseen == captured {
		s.effect = sess.analyze(s.sql, s.text)
		if !e.Plain {
			s.skip = Arguments // the parameters' types are unknown
		}
	}
	sess.held.remember(e.Name, s)
}

// executeSQL applies the effect of an EXECUTE to the session and returns what was executed.
func (sess *session) executeSQL(e sqltext.Effect, tag string) execution {
	switch s := sess.held.statements[e.Name]; {
	case s == nil:
		sess.risk(sess.held.unknown.risk() | sqltext.TagRisk(tag))
	case s.unseen != captured:
		sess.risk(s.risk | sqltext.TagRisk(tag))
	case s.effect.Action == sqltext.Execute:
		sess.settings.poison()
	default:
		x := newExecution(s, e)
		sess.effect(s.effect, x.params, x.skip, tag)
		return x
	}
	return sess.held.execution(e)
}
