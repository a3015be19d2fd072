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
	stated  capture.Stated
}

// sqlState returns the SQLSTATE of an ErrorResponse whose beginning was recorded, or "". The fields before it are the
// severity, twice. The message, which can hold values of rows, is not read.
func sqlState(body []byte) string {
	r := reader{b: body}
	for {
		kind := r.take(1)
		value := r.cstring()
		switch {
		case r.bad:
			return ""
		case kind[0] != 'C':
			continue
		case len(value) != 5:
			return ""
		}
		for _, c := range value {
			if (c < '0' || c > '9') && (c < 'A' || c > 'Z') {
				return ""
			}
		}
		return string(value)
	}
}

func class(state, prefix string) bool { return len(state) == 5 && state[:2] == prefix }

// ran reports whether a statement that failed got past parsing and analysis. Analyzed is true if an earlier answer
// proves it. Without that proof only errors count that analysis does not raise, or only for a literal. The server
// rejects text that is nested too deeply with 42601 or 54001: it must not reach a parser without that limit.
func (e ending) ran(analyzed bool) bool {
	switch e.state {
	case "25P02", "26000", "34000", "08P01": // refused before it was run
		return false
	}
	if analyzed {
		return true
	}
	switch e.state {
	case "57014":
		return true
	case "22021", "22025": // of the scanner
		return false
	}
	for _, c := range [...]string{"21", "22", "23", "27", "2F", "38", "39", "40", "44", "53", "55", "58", "HV", "P0", "XX"} {
		if class(e.state, c) {
			return true
		}
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
		t.extended.fail(t.extended.message.portal, ending{at: t.out.now, outcome: capture.Lost})
	}
}
