package tracker

import (
	"time"

	"github.com/dpwatch/dpwatch/internal/capture"
)

// ending is how and when a statement ended.
type ending struct {
	tag     string
	at      time.Time
	outcome capture.Outcome
	state   string // SQLSTATE of an error
	placed  bool   // the error has a place in the statement
	stated  capture.Stated
}

// readError returns the SQLSTATE of an ErrorResponse, or "", and whether it has a place in the statement, as far as the
// body was recorded. The message, which can hold values of rows, is skipped.
func readError(body []byte) (state string, placed bool) {
	r := reader{b: body}
	for {
		kind := r.take(1)
		value := r.cstring()
		switch {
		case r.bad:
			return state, placed
		case kind[0] == 'C':
			state = sqlState(value)
		case kind[0] == 'P':
			placed = true
		}
	}
}

// sqlState returns the SQLSTATE in the field of an error, "" if it is none.
func sqlState(value []byte) string {
	if len(value) != 5 {
		return ""
	}
	for _, c := range value {
		if (c < '0' || c > '9') && (c < 'A' || c > 'Z') {
			return ""
		}
	}
	return string(value)
}

func class(state, prefix string) bool { return len(state) == 5 && state[:2] == prefix }

// refused reports whether the server refused a statement before it planned or ran it, because the transaction has
// failed, or because the session lacks what it names. A function can raise the same errors.
func (sess *session) refused(e ending, lacking bool) bool {
	switch e.state {
	case "25P02":
		return sess.settings.failed
	case "26000", "34000":
		return lacking && !sess.held.unknown.expected
	}
	return false
}

// abandon captures the statement in progress when the connection ends.
func (t *Tracker) abandon() {
	switch t.typ {
	case 'Q':
		q := &t.simple.query
		if !q.failed && q.analyzed {
			t.simple.fail(ending{at: t.out.now, outcome: capture.Lost})
		}
		if len(q.done) <= q.count {
			t.simple.captureAll()
		}
	case 'E':
		t.extended.fail(t.extended.message.portal, ending{at: t.out.now, outcome: capture.Lost}, t.session.settings.current())
	}
}
