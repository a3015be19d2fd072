package tracker

import (
	"cmp"
	"strings"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/sqltext"
)

// maxStatements limits the statements of a simple query that is split.
const maxStatements = 256

// simpleQuery is the Query message in progress. Its statements are captured at ReadyForQuery, when it is certain that
// the server counted as many as sqltext did.
type simpleQuery struct {
	statements  []string // nil if the query is unprotected
	count       int      // statements in the text
	text        letters
	unseen      Reason       // why the text is unknown; captured if it is known
	risk        sqltext.Risk // of an unknown text
	skip        Reason       // why it is not captured although it is known
	done        []completion
	failed      bool
	failure     *completion // the statement that failed, if it was run
	analyzed    bool        // the server has begun to answer the current statement, so its text was valid
	empty       bool
	unprotected bool // no statement may read protected data or changes the session; texts are not kept
}

// completion is one statement that the server ran.
type completion struct {
	ending
	view   *view // in force when it ran
	effect sqltext.Effect
	ran    execution // for an EXECUTE
}

func (t *Tracker) beginQuery(r record) {
	clear(t.query.done)
	t.query = simpleQuery{done: t.query.done[:0]}
	t.forgetStatement("") // a simple query destroys the unnamed statement and portal
	t.forgetPortal("")
	text, ok := decodeText(r.body)
	switch {
	case r.cut:
		t.query.unseen, t.query.risk = NotCopied, r.risk
		return
	case !ok:
		t.query.unseen, t.query.risk = Unreadable, sqltext.Unread
		return
	}
	t.query.text = lettersOf(text)
	t.query.gate(&t.gate)
	if t.query.unseen != captured {
		return
	}
	if t.query.count, t.query.unprotected = t.unprotectedQuery(text, t.query.skip, true); !t.query.unprotected {
		t.query.statements = sqltext.Split(string(text))
		t.query.count = len(t.query.statements)
	}
	if t.query.count > maxStatements {
		t.query.unseen, t.query.statements, t.query.count = TooLong, nil, 0
		t.query.risk = sqltext.Mentions(string(text))
	}
}

func (q *simpleQuery) gate(g *gate) {
	if q.unseen != captured {
		return
	}
	unseen, skip := g.text(q.text)
	if unseen != captured {
		q.unseen, q.risk, q.statements, q.count = unseen, sqltext.Unread, nil, 0
	}
	if skip != captured {
		q.skip = skip
	}
}

// answerQuery handles one server message of a simple query; false if it cannot belong to one.
func (t *Tracker) answerQuery(r record) bool {
	q := &t.query
	switch r.typ {
	case 'C':
		t.completeSimple(r)
	case 'I':
		q.empty = true
	case 'E':
		if e := t.failure(r); !q.failed && e.ran(q.analyzed) {
			t.failSimple(e)
		}
		q.failed = true
		t.failed(t.failedSimple())
	case 'T', 'H':
		q.analyzed = true
	case 'G':
		t.copyIn, q.analyzed = true, true
	case 'Z':
		t.typ = 0
		return !t.copyIn && t.endQuery(r)
	default:
		return false
	}
	return true
}

func (t *Tracker) completeSimple(r record) {
	q := &t.query
	q.analyzed = false
	tag, _ := decodeText(r.body)
	if q.unseen != captured {
		t.unseen(q.unseen, string(tag), q.risk)
		return
	}
	if q.unprotected {
		q.done = append(q.done, completion{})
		return
	}
	c := completion{ending: ending{tag: string(tag), at: t.now}, view: t.settings.current()}
	if i := len(q.done); i < len(q.statements) {
		c.effect = t.analyze(q.statements[i], q.text)
		c.ran = t.effect(c.effect, nil, c.tag)
	}
	q.done = append(q.done, c)
}

// failSimple notes how the statement behind the completed ones ended.
func (t *Tracker) failSimple(e ending) {
	q := &t.query
	if q.unseen != captured {
		t.skip(q.unseen, "")
		return
	}
	c := &completion{ending: e}
	if i := len(q.done); i < len(q.statements) {
		c.view, c.effect = t.settings.current(), t.analyze(q.statements[i], q.text)
		if executes(c.effect) {
			c.ran = t.execution(c.effect)
		}
	}
	q.failure = c
}

// endQuery captures the statements that were run. Without an error the server must have completed exactly the
// statements that the text was split into; with one, it stopped at one of them. Otherwise the split was wrong and
// endQuery returns false.
func (t *Tracker) endQuery(r record) bool {
	q := &t.query
	cutRight := q.unseen != captured || len(q.done) == q.count && !q.failed ||
		q.failed && (len(q.done) < q.count || q.count == 0)
	if !cutRight || q.empty && q.count > 0 {
		return false
	}
	t.captureQuery()
	t.ready(r)
	return true
}

// captureQuery captures the statements that were run.
func (t *Tracker) captureQuery() {
	q := &t.query
	done := q.done
	if q.failure != nil && len(done) < q.count {
		done = append(done, *q.failure)
	}
	for i := range done {
		if q.unprotected {
			t.skip(cmp.Or(q.skip, Unprotected), "")
		} else {
			t.captureSimple(q.statements[i], &done[i])
		}
	}
}

func (t *Tracker) captureSimple(sql string, c *completion) {
	skip := t.query.skip
	if executes(c.effect) {
		t.captureExecution(c.ran, skip, c.ending, c.view)
		return
	}
	if len(sql) > t.cfg.MaxStatementBytes {
		skip = TooLong
	}
	if skip == captured && !t.maybeProtected(sql) {
		skip = Unprotected
	}
	if skip != captured {
		t.skip(skip, sql)
		return
	}
	if t.query.count > 1 {
		sql = strings.Clone(sql) // so that the other statements' text is not retained
	}
	t.capture(capture.Query{SQL: sql}, &c.ending, c.view, ownDoubt(c.effect))
}

// failedSimple returns the effect that the statement would have had at which the query failed.
func (t *Tracker) failedSimple() sqltext.Effect {
	q := &t.query
	switch {
	case q.unseen != captured:
		return unseenEffect(q.risk)
	case len(q.done) < len(q.statements):
		return t.failedEffect(t.analyze(q.statements[len(q.done)], q.text))
	}
	return sqltext.Effect{}
}

// unseenEffect returns the effect of a statement whose text is not known, except that its words have this risk.
func unseenEffect(words sqltext.Risk) sqltext.Effect {
	return sqltext.Effect{MayCommit: true, Doubt: sqltext.Doubt{
		Any: words&sqltext.RiskSettings != 0, Calls: []string{capture.UnlistedFunctions},
	}}
}

// failedEffect returns the effect of a failed statement: for EXECUTE, of the prepared statement.
func (t *Tracker) failedEffect(e sqltext.Effect) sqltext.Effect {
	if e.Action != sqltext.Execute {
		return e
	}
	s := t.statements[e.Name]
	switch {
	case s == nil:
		return sqltext.Effect{}
	case s.unseen != captured:
		return unseenEffect(s.risk)
	}
	return s.effect
}
