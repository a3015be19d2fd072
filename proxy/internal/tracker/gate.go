package tracker

import (
	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/sqltext"
)

// encoding is what the session's client_encoding lets be done with its text.
type encoding uint8

const (
	encodingUnknown encoding = iota // not reported, or another
	encodingUTF8
	encodingASCII // SQL_ASCII: understood where all bytes are below 0x80
)

// gate knows whether the text of statements can be read and captured: only with standard_conforming_strings on
// and an encoding that is UTF8 or ASCII. Both are reported by the server, at the latest before ReadyForQuery.
type gate struct {
	conforming bool // standard_conforming_strings is on
	encoding   encoding
	touched    bool // one of the two was changed in this transaction
	pending    bool // one of the two may have changed, and the report has not come yet
}

// report takes the body of a ParameterStatus message; known is false when it was not kept.
func (g *gate) report(body []byte, known bool) {
	r := reader{b: body}
	name, value := r.cstring(), r.cstring()
	if !known || r.bad {
		*g = gate{}
		return
	}
	switch string(name) {
	case "standard_conforming_strings":
		g.conforming = string(value) == "on"
	case "client_encoding":
		switch string(value) {
		case "UTF8", "UNICODE":
			g.encoding = encodingUTF8
		case "SQL_ASCII":
			g.encoding = encodingASCII
		default:
			g.encoding = encodingUnknown
		}
	}
}

// effect notes what a completed statement may have changed before the server reports it.
func (g *gate) effect(e sqltext.Effect) {
	switch e.Action {
	case sqltext.Set, sqltext.Reset:
		if e.Name == "client_encoding" || e.Name == "standard_conforming_strings" {
			g.change()
		}
	case sqltext.ResetAll, sqltext.DiscardAll, sqltext.Unclear:
		g.change()
	case sqltext.Commit, sqltext.Rollback, sqltext.RollbackTo:
		g.pending = g.pending || g.touched
	}
	if e.Hidden {
		g.change()
	}
}

func (g *gate) change() { g.touched, g.pending = true, true }

// ready notes ReadyForQuery: whatever changed was reported by now.
func (g *gate) ready(idle bool) {
	g.pending = false
	if idle {
		g.touched = false
	}
}

// text says what can be done with a text, of which is known whether all its bytes are ASCII: unseen is why it
// cannot be read at all, skip why it is not captured though it can. ASCII reads the same in every encoding.
func (g *gate) text(isASCII bool) (unseen, skip Reason) {
	switch {
	case g.pending:
		return Encoding, Encoding
	case !g.conforming:
		return Strings, Strings
	case g.encoding == encodingUTF8, g.encoding == encodingASCII && isASCII:
		return captured, captured
	case isASCII:
		return captured, Encoding
	}
	return Encoding, Encoding
}

// params is text for the parameters of a Bind message.
func (g *gate) params(isASCII bool) Reason {
	_, skip := g.text(isASCII)
	if skip == Strings {
		return captured // values are no literals
	}
	return skip
}

// asciiParams reports whether all values that hold text are ASCII.
func asciiParams(params []capture.Param) bool {
	for _, p := range params {
		if (p.Format == 0 || textual(p.OID)) && !ascii(p.Value) {
			return false
		}
	}
	return true
}

func ascii(b []byte) bool {
	for _, c := range b {
		if c >= 0x80 {
			return false
		}
	}
	return true
}

// textual reports whether the binary form of a type is its text: name, text, unknown, bpchar, varchar, or one
// that the server infers (OIDs of pg_type.dat).
func textual(oid uint32) bool {
	switch oid {
	case 0, 19, 25, 705, 1042, 1043:
		return true
	}
	return false
}
