package tap

import (
	"bytes"

	"github.com/dpwatch/dpwatch/internal/sqltext"
	"github.com/dpwatch/dpwatch/proxy/internal/tracker"
)

// A session comes back into step when the server is idle and has answered all messages of the client. The taps count
// both sides to find that moment, because the tracker sees nothing in a gap. A turn is a message that the server
// answers with one ReadyForQuery. It does not do so for a Sync that it reads during COPY FROM STDIN, nor for a turn
// that it ignores after an error in the extended protocol. The counts begin with the first message after a gap that is
// more than a Sync, or with its answer, because it can be unknown how many Sync messages before it were answered.

// asked counts the client's messages.
type asked struct {
	counting bool
	turns    int
	tail     int  // Sync messages at the end of the stream so far, with nothing before them to answer
	open     bool // the last messages wait for a Sync
	within   bool // inside a message

	last   byte // the last message that was neither a Sync nor of a COPY
	syncs  int  // Sync messages since then
	copied bool // since then a COPY has ended
	copies int  // ends of a COPY behind an Execute
	around int  // Sync messages between these Execute messages and the next message that is not one
}

// message counts a message of the client, except CopyData.
func (a *asked) message(typ byte) {
	switch typ {
	case 'c', 'f':
		if a.last == 'E' && !a.copied {
			a.copied = true
			a.copies++
			a.around += a.syncs
		}
		return
	case 'S':
		if a.counting {
			a.turns++
			a.syncs++
		}
		if a.copied {
			a.around++
		}
		if !a.open {
			a.tail++
		}
		a.open = false
		return
	case 'Q', 'F':
		a.turns++
	}
	a.counting, a.open = true, typ != 'Q' && typ != 'F'
	a.last, a.tail, a.syncs, a.copied = typ, 0, 0, false
}

// answered counts the server's messages.
type answered struct {
	counting bool
	turns    int
	idle     bool // the last message was a ReadyForQuery outside a transaction
	within   bool // inside a message

	extended bool // since the last ReadyForQuery there was an answer of the extended protocol
	copying  bool // a COPY FROM STDIN of it is in progress
	copied   bool // the last message but ReadyForQuery was the end of one
	copies   int  // ends of one
	around   int  // ReadyForQuery messages behind them
}

// message counts a message of the server that is not asynchronous.
func (a *answered) message(typ byte) {
	a.idle = false
	if typ == 'Z' {
		if a.counting {
			a.turns++
		}
		if a.copied {
			a.around++
		}
		a.extended = false
		return
	}
	a.counting = true
	switch typ {
	case '1', '2', '3', 'n', 's':
		a.extended = true
	}
	if a.copied = a.copying; a.copied {
		a.copies++
	}
	a.copying = typ == 'G' && a.extended
}

// missing describes the messages of one direction in a gap, of which nothing is recorded.
type missing struct {
	risk    sqltext.Risk
	torn    []byte      // the beginning of the body in which the gap began
	reports [2]reported // the last ParameterStatus messages that the tracker needs
}

// reported is the body of a ParameterStatus message; empty if there was none.
type reported struct {
	body  [maxReport]byte
	bytes int
}

// maxReport is the length of a recorded ParameterStatus message in a gap. Longer values are none that the tracker
// needs.
const maxReport = tracker.CutLen

// report keeps a ParameterStatus message, of which the beginning is given, if the tracker needs it.
func (m *missing) report(body []byte) {
	for i, name := range [...]string{"client_encoding\x00", "standard_conforming_strings\x00"} {
		if bytes.HasPrefix(body, []byte(name)) {
			m.reports[i].bytes = copy(m.reports[i].body[:], body)
		}
	}
}

// lose begins a gap in both directions. Capture resumes when the session is idle (resume).
func (t *Session) lose() {
	t.client.mu.Lock()
	t.server.mu.Lock()
	if !t.client.lost {
		t.client.gap()
		t.server.gap()
		t.out.Store(true)
	}
	t.server.mu.Unlock()
	t.client.mu.Unlock()
	t.notify()
	t.drainer.hurry()
}

// settle receives from the tracker how many turns were not answered. Idle means that the tracker has matched all its
// records and expects no answer: if there are no newer ones either, the counts begin anew.
func (t *Session) settle(u tracker.Unanswered, idle bool) {
	t.client.mu.Lock()
	t.server.mu.Lock()
	t.unanswered = u
	if idle && !t.client.lost && t.quiet() && t.client.empty() && t.server.empty() {
		t.restart(u)
	}
	t.server.mu.Unlock()
	t.client.mu.Unlock()
}

// restart begins to count anew. The caller holds both locks.
func (t *Session) restart(base tracker.Unanswered) {
	t.asked = asked{tail: t.asked.tail}
	t.answered = answered{idle: true}
	t.base = base
}

// quiet reports whether no message is incomplete and the server is idle. The caller holds both locks.
func (t *Session) quiet() bool {
	return t.answered.idle && !t.answered.within && !t.asked.within && !t.asked.open
}

// resume ends a gap if nothing is in progress. Outstanding is the number of turns that the server has not answered, or
// more. If they are at most the Sync messages at the end, whose answers cannot be confused with others, capture can
// resume.
func (t *Session) resume() {
	t.client.mu.Lock()
	t.server.mu.Lock()
	if t.client.lost && t.quiet() && !t.sending.Load() {
		if outstanding := t.asked.turns - t.answered.turns - t.ignored(); outstanding >= 0 && outstanding <= t.asked.tail {
			t.endGap()
		}
	}
	t.server.mu.Unlock()
	t.client.mu.Unlock()
}

// ignored returns how many turns the server ignored, or less. The caller holds both locks.
func (t *Session) ignored() int {
	var u tracker.Unanswered
	if t.unanswered.Gaps == t.resumed {
		u = t.unanswered
		u.Skipped -= t.base.Skipped
		u.Copy -= t.base.Copy
	}
	if t.asked.copies == t.answered.copies { // of a COPY that succeeded or failed, the server has answered all but the ignored ones
		u.Copy = t.asked.around - t.answered.around
	}
	return u.Skipped + u.Copy
}

// endGap ends a gap. The caller holds both locks.
func (t *Session) endGap() {
	for i := range t.server.missing.reports {
		r := &t.server.missing.reports[i]
		if r.bytes > 0 {
			t.server.room().b = append(tracker.AppendHeader(t.server.room().b, 'S', r.bytes), r.body[:r.bytes]...)
		}
	}
	t.client.resume(tracker.Gap{Risk: t.client.missing.risk, Syncs: t.asked.tail})
	t.server.resume(tracker.Gap{Risk: t.server.missing.risk})
	t.restart(tracker.Unanswered{})
	t.resumed++
	t.out.Store(false)
	t.notify()
}
