package tracker

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

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
	streams     bool // it is a command of the replication protocol
	malformed   bool // it is not in UTF-8, as it should be
	unprotected bool // no statement may read protected data or changes the session; texts are not kept
}

// simple follows the simple query protocol.
type simple struct {
	cfg     *Config
	out     *emitter
	held    *held
	session *session
	query   simpleQuery
}

// completion is one statement that the server ran.
type completion struct {
	ending
	view   *view // in force when it ran
	effect sqltext.Effect
	ran    execution // for an EXECUTE
}

func (m *simple) begin(r record) {
	clear(m.query.done)
	m.query = simpleQuery{done: m.query.done[:0]}
	m.held.forgetStatement("") // a simple query destroys the unnamed statement and portal
	m.held.forgetPortal("")
	text, ok := decodeText(r.body)
	switch {
	case r.cut:
		m.query.unseen, m.query.risk = NotCopied, r.risk
		return
	case !ok:
		m.query.unseen, m.query.risk = Unreadable, sqltext.Unread
		return
	}
	m.query.text = lettersOf(text)
	m.query.malformed = m.query.text == otherLetters && m.session.gate.encoding == encodingUTF8 && !utf8.Valid(text)
	m.query.gate(&m.session.gate)
	if m.query.unseen != captured {
		return
	}
	if m.query.count, m.query.unprotected = m.session.unprotectedQuery(text, m.query.skip, true); !m.query.unprotected {
		m.query.statements = sqltext.Split(string(text))
		m.query.count = len(m.query.statements)
	}
	if m.query.count > maxStatements {
		m.query.unseen, m.query.statements, m.query.count = TooLong, nil, 0
		m.query.risk = sqltext.Mentions(string(text))
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

// regate checks the query again when a status report precedes its answer. It is unknown whether the server read the
// message before or after the change, so the message must pass both times.
func (m *simple) regate() {
	if len(m.query.done) == 0 {
		m.query.gate(&m.session.gate)
	}
}

// answerQuery handles one server message of a simple query; false if it cannot belong to one.
func (t *Tracker) answerQuery(r record) bool {
	q := &t.simple.query
	switch r.typ {
	case 'C':
		t.simple.complete(r)
	case 'I':
		q.empty = true
	case 'E':
		if e := t.out.failure(r); !q.failed {
			t.simple.fail(e)
		}
		q.failed = true
		t.failed(t.simple.failedEffect())
	case 'T', 'H':
		q.analyzed = true
	case 'G':
		t.copyIn, q.analyzed = true, true
	case 'W': // in replication: the server may complete the command more than once
		q.analyzed, q.streams = true, true
	case 'Z':
		t.typ = 0
		if t.copyIn || !t.simple.end() {
			return false
		}
		t.ready(r)
		return true
	default:
		return false
	}
	return true
}

func (m *simple) complete(r record) {
	q := &m.query
	q.analyzed = false
	if q.streams {
		return
	}
	m.session.completed(r.body)
	tag, _ := decodeText(r.body)
	if q.unseen != captured {
		m.session.unseen(q.unseen, string(tag), q.risk)
		return
	}
	if q.unprotected {
		q.done = append(q.done, completion{})
		return
	}
	c := completion{ending: ending{tag: string(tag), at: m.out.now, stated: m.out.stated}, view: m.session.settings.current()}
	if i := len(q.done); i < len(q.statements) {
		c.effect = m.session.analyze(q.statements[i], q.text)
		c.ran = m.session.effect(c.effect, nil, q.skip, c.tag)
	}
	q.done = append(q.done, c)
}

// fail notes how the statement behind the completed ones ended. Without a place in the statement, an error is not one of
// parsing and analysis, unless the text is no text: then what the statement says can depend on rows.
func (m *simple) fail(e ending) {
	q := &m.query
	if !q.analyzed && (e.placed || e.state == "22021" && q.malformed) {
		return
	}
	if q.unseen != captured {
		if !m.session.refused(e, false) {
			m.out.skip(q.unseen, "")
		}
		return
	}
	c := &completion{ending: e}
	if i := len(q.done); i < len(q.statements) {
		c.view, c.effect = m.session.settings.current(), m.session.analyze(q.statements[i], q.text)
		if m.session.refused(e, m.held.lacks(c.effect)) {
			return
		}
		if executes(c.effect) {
			c.ran = m.session.execution(c.effect)
		}
	}
	if c.effect.Action == sqltext.Commit || len(q.done)+1 == q.count {
		m.session.endFailed(e)
	}
	q.failure = c
}

// end captures the statements that were run. Without an error the server must have completed exactly the
// statements that the text was split into; with one, it stopped at one of them. Otherwise the split was wrong and
// end returns false.
func (m *simple) end() bool {
	q := &m.query
	if q.streams {
		m.out.skip(Unprotected, "")
		return true
	}
	cutRight := q.unseen != captured || len(q.done) == q.count && !q.failed ||
		q.failed && (len(q.done) < q.count || q.count == 0)
	if !cutRight || q.empty && q.count > 0 {
		return false
	}
	m.captureAll()
	return true
}

// captureAll captures the statements that were run. Of several statements, it is not certain about which ones the engine
// states claims: it may have read the message as a whole.
func (m *simple) captureAll() {
	q := &m.query
	done := q.done
	if q.failure != nil && len(done) < q.count {
		done = append(done, *q.failure)
	}
	unclear := q.count > 1 && slices.ContainsFunc(done, func(c completion) bool { return !c.stated.None() })
	for i := range done {
		if unclear {
			done[i].stated = capture.Stated{Unclear: true}
		}
		if q.unprotected {
			m.out.skip(cmp.Or(q.skip, Unprotected), "")
		} else {
			m.capture(q.statements[i], &done[i])
		}
	}
}

func (m *simple) capture(sql string, c *completion) {
	skip := m.query.skip
	switch {
	case executes(c.effect):
		m.out.captureExecution(c.ran, skip, c.ending, c.view)
		return
	case c.effect.Action == sqltext.DeclareCursor && c.outcome == capture.Complete: // its query runs when rows are read
		return
	case c.effect.Action == sqltext.DeclareCursor && !c.effect.Hold:
		sql = "EXPLAIN " + sql // it was planned
	}
	if len(sql) > m.cfg.MaxStatementBytes {
		skip = TooLong
	}
	if skip == captured && !m.out.maybeProtected(sql, c.view) {
		skip = Unprotected
	}
	if skip != captured {
		m.out.skip(skip, sql)
		return
	}
	if m.query.count > 1 {
		sql = strings.Clone(sql) // so that the other statements' text is not retained
	}
	m.out.capture(capture.Query{SQL: sql}, &c.ending, c.view, ownDoubt(c.effect))
}

// failedSimple returns the effect that the statement would have had at which the query failed.
func (m *simple) failedEffect() sqltext.Effect {
	q := &m.query
	switch {
	case q.unseen != captured:
		return unseenEffect(q.risk)
	case len(q.done) < len(q.statements):
		return m.held.failedEffect(m.session.analyze(q.statements[len(q.done)], q.text))
	}
	return sqltext.Effect{}
}

// unseenEffect returns the effect of a statement whose text is not known, except that its words have this risk.
func unseenEffect(words sqltext.Risk) sqltext.Effect {
	return sqltext.Effect{MayCommit: true, Doubt: sqltext.Doubt{
		Any: words&sqltext.RiskSettings != 0, Calls: []string{capture.UnlistedFunctions},
	}}
}
