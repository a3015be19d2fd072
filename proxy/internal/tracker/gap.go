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
	t.discardUntil(&t.client, client, t.discardClient)
	t.discardUntil(&t.server, server, t.discardServer)
	if complete {
		t.client.pop()
		t.server.pop()
		t.gap.lost, t.gap.begun = false, true
	}
	return complete
}

// discardUntil discards the records before a gap that ends at the byte end, or all records if end is 0.
func (t *Tracker) discardUntil(q *queue, end int, discard func(record)) {
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
	q := &t.query
	switch {
	case t.typ == 'Q' && q.unseen != captured:
		t.gap.risk |= q.risk
	case t.typ == 'Q':
		for _, sql := range q.statements[min(len(q.done), len(q.statements)):] {
			t.gap.risk |= sqltext.Mentions(sql)
		}
		t.cfg.Counts.Skipped[NotCopied] += uint64(len(q.done))
	case t.typ == 'P' && t.ext.statement != nil && t.ext.statement.hides():
		t.gap.risk |= sqltext.RiskSettings
	case t.typ == 'C':
		t.gap.risk |= sqltext.RiskNames
	case t.typ == 'F':
		t.gap.risk |= sqltext.RiskSettings
	}
	t.typ = 0
}

func (t *Tracker) discardClient(r record) {
	switch {
	case r.typ == 'C':
		t.gap.risk |= sqltext.RiskNames
	case r.typ == 'F':
		t.gap.risk |= sqltext.RiskSettings
	case r.typ == 'Q', r.typ == 'P':
		if r.risk == 0 && !r.cut {
			r.risk = sqltext.Mentions(string(r.body))
		}
		t.gap.risk |= r.risk
	}
}

func (t *Tracker) discardServer(r record) {
	switch r.typ {
	case 'S':
		t.reported(r)
	case 'C':
		tag, _ := decodeText(r.body)
		t.gap.risk |= sqltext.TagRisk(string(tag))
		t.skip(NotCopied, "")
	case 's', 'E':
		t.skip(NotCopied, "")
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
		t.discardServer(server)
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
	t.gap = gap{}
	t.typ, t.copyIn, t.skipping, t.started = 0, false, false, true
	t.failedCopy = failedCopy{}
	t.bare = bare{active: syncs > 0, after: true, most: syncs}
	t.ignored = Unanswered{Gaps: t.ignored.Gaps + 1}
	t.settled = t.ignored
	clear(t.query.done)
	t.query, t.ext = simpleQuery{done: t.query.done[:0]}, extendedMessage{}
	t.forgetStatement("")
	t.forgetPortals()
	if t.preparedHides {
		risk |= sqltext.RiskSettings
	}
	t.settings.reports.lost()
	t.settings.unseen()
	t.risk(risk)
	t.unknown.add(risk&sqltext.RiskSettings != 0)
	t.gate.ready(true)
}

// risk makes uncertain what statements with this risk may have changed. They may have called any function.
func (t *Tracker) risk(r sqltext.Risk) {
	t.settings.doubt(sqltext.Doubt{Calls: []string{capture.UnlistedFunctions}})
	if r&sqltext.RiskCode != 0 {
		t.ownCode = true
		t.settings.doubtAll()
	}
	if r&sqltext.RiskSettings != 0 {
		t.settings.poison()
		t.gate.change()
		t.preparedSetter = true
	}
	if r&sqltext.RiskNames != 0 {
		t.forgetStatements()
		t.forgetPortals()
	}
	if r&sqltext.RiskTemps != 0 || r&sqltext.RiskRenames != 0 && len(t.settings.now.temps.names) > 0 {
		t.settings.loseTemps()
	}
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
