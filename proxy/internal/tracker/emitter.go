package tracker

import (
	"fmt"
	"time"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/sqltext"
)

// emitter emits the statements that are captured, and counts the others.
type emitter struct {
	cfg    *Config
	now    time.Time
	stated capture.Stated // about the answer that the present record ends

	redefinition sqltext.Redefinition // by the transaction
}

// skip counts a statement that is not captured; sql is its text, "" if that is not known.
func (o *emitter) skip(reason Reason, sql string) {
	o.cfg.Counts.Skipped[reason]++
	s := &o.cfg.Startup
	if reason == Unprotected || !o.cfg.Samples.Wants(reason.String(), s.User, s.Database, s.ApplicationName) {
		return
	}
	x := capture.SampleOf(reason.String(), capture.Query{SQL: sql, User: s.User, Database: s.Database, ApplicationName: s.ApplicationName, Completed: o.now},
		reason == Encoding || reason == Strings)
	if reason == TooLong {
		x.Detail = fmt.Sprintf("%d bytes", len(sql))
	}
	o.cfg.Samples.Add(x)
}

// capture emits a statement that was run. Besides what was in doubt before, own is what it could change itself.
func (o *emitter) capture(q capture.Query, e *ending, v *view, own capture.Doubt) {
	q.SessionID, q.Began = o.cfg.SessionID, o.cfg.Began
	q.User, q.Database, q.ApplicationName = o.cfg.Startup.User, o.cfg.Startup.Database, v.app
	q.Tag, q.Completed, q.Outcome, q.SQLState = e.tag, e.at, e.outcome, e.state
	q.Stated = e.stated
	if o.cfg.StatedClaims && e.outcome != capture.Complete && e.stated.None() {
		q.Stated.Unclear = true
	}
	switch {
	case o.redefinition == sqltext.NewMeaning:
		q.Definition = capture.Uncommitted
	case o.cfg.Definitions.Unread():
		q.Definition = capture.Unread
	}
	if q.Tag == "DO" && sqltext.MayRedefine(q.SQL) {
		o.redefined(sqltext.NewMeaning)
	}
	q.Settings, q.Doubt = v.settings, v.doubt.Add(own)
	q.Temporary, q.Temps = v.temps.namedIn(q.SQL)
	o.cfg.Counts.Captured++
	o.cfg.Emit(q)
}

// captureExecution emits the prepared statement of an EXECUTE, as if it had come through the extended protocol, or the
// statement of the portal from which a FETCH read. Skip is why the EXECUTE or FETCH itself is not captured.
func (o *emitter) captureExecution(x execution, skip Reason, e ending, v *view) {
	switch {
	case x.known:
		return
	case skip != captured:
	case x.portal != nil:
		o.capturePortal(x.portal, &e, x.view, "")
		return
	case x.skip != captured:
		skip = x.skip
	case x.statement.sql == "":
		return
	case len(x.before)+len(x.statement.sql) > o.cfg.MaxStatementBytes:
		skip = TooLong
	case !o.maybeProtected(x.statement.sql, v):
		skip = Unprotected
	}
	if skip != captured {
		text := ""
		if x.statement != nil {
			text = x.statement.sql
		}
		o.skip(skip, text)
		return
	}
	o.capture(capture.Query{
		SQL: x.before + x.statement.sql, Protocol: capture.Extended, Named: true, Params: x.params,
	}, &e, v, ownDoubt(x.statement.effect))
}

// capturePortal emits the statement of a portal, after the text before it, as of rows that were computed with the
// settings of v.
func (o *emitter) capturePortal(p *portal, e *ending, v *view, before string) {
	s := p.statement
	skip := p.skip
	switch {
	case s == nil:
		skip = UnknownStatement
		s = &statement{}
	case s.unseen != captured:
		skip = s.unseen
	case s.skip != captured:
		skip = s.skip
	case len(before)+len(s.sql) > o.cfg.MaxStatementBytes:
		skip = TooLong
	case skip == captured && !o.maybeProtected(s.sql, v):
		skip = Unprotected
	}
	if skip != captured {
		o.skip(skip, s.sql)
		return
	}
	q := capture.Query{SQL: before + s.sql, Named: p.named, Params: p.params, ResultFormats: p.results}
	if p.extended {
		q.Protocol = capture.Extended
	}
	o.capture(q, e, v, ownDoubt(s.effect).Add(p.view.since(v)))
}

// maybeProtected reports whether a statement, run under v, needs to be captured.
func (o *emitter) maybeProtected(sql string, v *view) bool {
	return v.temps.mayMatter(o.cfg.MaybeProtected, sql)
}

// redefined records what a statement changed in the definitions of the database.
func (o *emitter) redefined(r sqltext.Redefinition) {
	if o.redefinition == sqltext.NoChange && r != sqltext.NoChange {
		o.cfg.Definitions.Begin()
	}
	o.redefinition = max(o.redefinition, r)
}

// settled ends the transaction: what it changed in definitions is visible, or undone.
func (o *emitter) settled() {
	if o.redefinition != sqltext.NoChange {
		o.redefinition = sqltext.NoChange
		o.cfg.Definitions.End()
	}
}

// failure returns the end of a statement by this ErrorResponse.
func (o *emitter) failure(r record) ending {
	e := ending{at: o.now, outcome: capture.Failed, stated: o.stated}
	e.state, e.placed = readError(r.body)
	e.placed = e.placed || r.placed
	switch {
	case e.state == "57014":
		e.outcome = capture.Cancelled
	case class(e.state, "57"), class(e.state, "08"):
		e.outcome = capture.Lost
	}
	return e
}
