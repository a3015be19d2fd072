package tracker

import (
	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/sqltext"
)

// gap is the state of a tracker that does not follow its session.
type gap struct {
	lost  bool // out of step: records are discarded until a gap begins
	begun bool // a gap has begun: its end is next
	risk  sqltext.Risk
}

// Lost reports whether the tracker needs a gap to come back into step.
func (t *Tracker) Lost() bool { return t.gap.lost }

// lose discards the records up to the next gap, because the answers do not match the messages.
func (t *Tracker) lose() {
	t.cfg.Counts.Off[OffPairing]++
	t.gap.lost = true
}

// pass makes progress where step cannot: over a gap; false if there is none.
func (t *Tracker) pass() bool {
	if t.gap.begun {
		return t.endGap()
	}
	client, server := t.client.gap(), t.server.gap()
	complete := client > 0 && server > 0
	if !complete && !t.gap.lost {
		return false
	}
	if complete && !t.gap.lost {
		t.cfg.Counts.Off[OffOverflow]++
	}
	t.discardMessage()
	t.client.discardUntil(client, t.gap.discardClient)
	t.server.discardUntil(server, func(r record) { t.gap.discardServer(r, t.session, t.out) })
	if complete {
		t.client.pop()
		t.server.pop()
		t.gap.lost, t.gap.begun = false, true
	}
	return complete
}

// discardUntil discards the records before a gap that ends at the byte end, or all records if end is 0.
func (q *queue) discardUntil(end int, discard func(record)) {
	rest := 0
	if end > 0 {
		rest = len(q.buf) - end + HeaderLen
	}
	for len(q.buf) > rest {
		r, n, ok := q.peek()
		if !ok {
			return
		}
		discard(r)
		q.drop(n)
	}
}

// discardMessage discards the message whose answer is incomplete.
func (t *Tracker) discardMessage() {
	switch t.typ {
	case 'Q':
		t.gap.risk |= t.simple.discard()
	case 'P':
		if s := t.extended.message.statement; s != nil && s.hides() {
			t.gap.risk |= sqltext.RiskSettings
		}
	case 'C':
		t.gap.risk |= sqltext.RiskNames
	case 'F':
		t.gap.risk |= sqltext.RiskSettings
	}
	t.typ = 0
}

// discard discards the query in progress and returns the risk of its statements that are not known to be complete.
func (m *simple) discard() (risk sqltext.Risk) {
	q := &m.query
	if q.unseen != captured {
		return q.risk
	}
	for _, sql := range q.statements[min(len(q.done), len(q.statements)):] {
		risk |= sqltext.Mentions(sql)
	}
	m.cfg.Counts.Skipped[NotCopied] += uint64(len(q.done))
	return risk
}

func (g *gap) discardClient(r record) {
	switch {
	case r.typ == 'C':
		g.risk |= sqltext.RiskNames
	case r.typ == 'F':
		g.risk |= sqltext.RiskSettings
	case r.typ == 'Q', r.typ == 'P':
		if r.risk == 0 && !r.cut {
			r.risk = sqltext.Mentions(string(r.body))
		}
		g.risk |= r.risk
	}
}

func (g *gap) discardServer(r record, sess *session, out *emitter) {
	switch r.typ {
	case 'S':
		sess.reported(r)
	case 'C':
		tag, _ := decodeText(r.body)
		g.risk |= sqltext.TagRisk(string(tag))
		out.skip(NotCopied, "")
	case 's', 'E':
		out.skip(NotCopied, "")
	}
}

// endGap continues behind a gap, once both directions have reached its end; false if they have not. What the lost
// messages may have changed is uncertain, all else is as before: see sqltext.Risk.
func (t *Tracker) endGap() bool {
	client, _, ok := t.client.peek()
	if !ok {
		return false
	}
	for {
		server, n, ok := t.server.peek()
		if !ok {
			return false
		}
		if server.typ == resumeRecord {
			break
		}
		t.gap.discardServer(server, t.session, t.out)
		t.server.drop(n)
	}
	server, _ := t.server.pop()
	asked, answered := decodeGap(client.body), decodeGap(server.body)
	t.client.pop()
	t.resume(t.gap.risk|asked.Risk|answered.Risk, asked.Syncs)
	return true
}

// resume is the state after a gap with this risk.
func (t *Tracker) resume(risk sqltext.Risk, syncs int) {
	t.gap, t.out.stated = gap{}, capture.Stated{}
	t.typ, t.copyIn, t.skipping, t.started = 0, false, false, true
	t.failedCopy = failedCopy{}
	t.bare = bare{active: syncs > 0, after: true, most: syncs}
	t.ignored = Unanswered{Gaps: t.ignored.Gaps + 1}
	t.settled = t.ignored
	clear(t.simple.query.done)
	t.simple.query, t.extended.message = simpleQuery{done: t.simple.query.done[:0]}, extendedMessage{}
	t.held.forgetStatement("")
	t.held.missPortals()
	t.held.forgetPortals()
	if t.held.hides {
		risk |= sqltext.RiskSettings
	}
	t.session.settings.reports.lost()
	t.session.settings.unseen()
	t.session.risk(risk)
	t.held.unknown.add(risk&sqltext.RiskSettings != 0)
	t.session.gate.ready(true)
}

// unknown is what is known about prepared statements and portals that the tracker does not hold.
type unknown struct {
	expected bool // there may be some: they were created in a gap, or there were too many to keep
	hides    bool // one of these may change settings in a way that its command tag does not show
}

func (u *unknown) add(hides bool) { u.expected, u.hides = true, u.hides || hides }

// risk returns the risk of executing one of them, besides that of its command tag.
func (u *unknown) risk() sqltext.Risk {
	if u.expected && !u.hides {
		return 0
	}
	return sqltext.Unread
}
