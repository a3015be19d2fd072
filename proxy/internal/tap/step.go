package tap

import (
	"bytes"

	"github.com/dpwatch/dpwatch/internal/sqltext"
	"github.com/dpwatch/dpwatch/proxy/internal/tracker"
)

// A session comes back into step when the server is idle and has answered all messages of the client. The taps count both sides
// to find that moment, because the tracker sees nothing in a gap. A turn is a message that the server answers with one
// ReadyForQuery. It does not do so for a Sync that it reads during COPY FROM STDIN, nor for a turn that it ignores after
// an error in the extended protocol. The counts begin with the first message after a gap that is more than a Sync, or with
// its answer, because it can be unknown how many Sync messages before it were answered.

// asked counts the client's messages.
type asked struct {
	counting bool
	turns    int
	tail     int  // Sync messages at the end of the stream so far, with nothing before them to answer
	open     bool // the last messages wait for a Sync
	copying  bool // the last message was CopyData: CopyDone or CopyFail follows
	within   bool // inside a message
	syncs    int  // Sync messages since the last message that could begin a COPY FROM STDIN
	copies   int  // CopyDone messages
	inCopy   int  // Sync messages before them, which the server has ignored if each of them ended a COPY
}

// message counts a message of the client, except CopyData.
func (a *asked) message(typ byte) {
	switch typ {
	case 'c', 'f':
		a.copying = false
		if typ == 'c' && a.counting {
			a.copies++
			a.inCopy += a.syncs
		}
		a.syncs = 0
		return
	case 'S':
		if a.counting {
			a.turns++
			a.syncs++
		}
		if !a.open {
			a.tail++
		}
	case 'Q', 'F':
		a.counting = true
		a.turns++
		a.tail, a.syncs = 0, 0
	default: // Parse, Bind, Execute, Describe, Close
		a.counting, a.open = true, true
		a.tail, a.syncs, a.copying = 0, 0, false
		return
	}
	a.open, a.copying = false, false
}

// answered counts the server's messages.
type answered struct {
	counting bool
	turns    int
	idle     bool // the last message was a ReadyForQuery outside a transaction
	within   bool // inside a message
	copying  bool // a COPY FROM STDIN is in progress
	copies   int  // of these, those that succeeded
}

// message counts a message of the server that is not asynchronous.
func (a *answered) message(typ byte) {
	a.idle = false
	if typ == 'Z' {
		if a.counting {
			a.turns++
		}
		return
	}
	a.counting = true
	if typ == 'C' && a.copying {
		a.copies++
	}
	a.copying = typ == 'G'
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

// maxReport is the length of a recorded ParameterStatus message in a gap. Longer values are none that the tracker needs.
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

// settle receives from the tracker how many turns were not answered.
func (t *Session) settle(u tracker.Unanswered) {
	t.client.mu.Lock()
	t.unanswered = u
	t.client.mu.Unlock()
}

// resume ends a gap if nothing is in progress. Outstanding is the number of turns that the server has not answered, or more;
// if they are at most the Sync messages at the end, whose answers cannot be confused with others, capture can resume.
func (t *Session) resume() {
	t.client.mu.Lock()
	t.server.mu.Lock()
	a, b := &t.asked, &t.answered
	if t.client.lost && b.idle && !b.within && !a.within && !a.open && !a.copying {
		if outstanding := a.turns - b.turns - t.ignored(); outstanding >= 0 && outstanding <= a.tail {
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
	}
	if t.asked.copies == t.answered.copies { // every CopyDone ended a COPY
		u.Copy = t.asked.inCopy
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
	t.asked = asked{tail: t.asked.tail}
	t.answered = answered{idle: true}
	t.resumed++
	t.out.Store(false)
	t.notify()
}
