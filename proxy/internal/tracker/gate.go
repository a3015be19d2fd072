package tracker

import (
	"slices"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/sqltext"
)

// encoding is how the tracker can read text in the session's client_encoding.
type encoding uint8

const (
	encodingUnknown encoding = iota // not reported
	encodingUTF8
	encodingASCII // bytes below 0x80 are always ASCII characters: the syntax can be read, other characters cannot
	encodingMixed // bytes below 0x80 can be parts of other characters; text without others is ASCII
)

// gate decides whether the text of statements can be read and captured: only with standard_conforming_strings on and a
// client_encoding of UTF8, or text that is all ASCII. The server reports both settings, at the latest before
// ReadyForQuery.
type gate struct {
	conforming bool // standard_conforming_strings is on
	encoding   encoding
	touched    bool // one of the two changed in this transaction
	pending    bool // one of the two may have changed and was not reported yet
}

// report handles a ParameterStatus message with this body, of which only the beginning may be recorded: then whole is
// false.
func (g *gate) report(body []byte, whole bool) {
	r := reader{b: body}
	name := r.cstring()
	if r.bad {
		if whole || len(body) == 0 { // otherwise the name is longer than those read here
			*g = gate{}
		}
		return
	}
	value := r.cstring()
	switch string(name) {
	case "standard_conforming_strings":
		g.conforming = string(value) == "on"
	case "client_encoding":
		switch string(value) {
		case "UTF8", "UNICODE":
			g.encoding = encodingUTF8
		case "BIG5", "GB18030", "GBK", "JOHAB", "SJIS", "SHIFT_JIS_2004", "UHC": // chapter 24.3 of the manual: client only
			g.encoding = encodingMixed
		default:
			g.encoding = encodingASCII
		}
	}
}

// effect records a change by a completed statement, or by its calls of set_config, that the server has not reported
// yet.
func (g *gate) effect(e sqltext.Effect, changes []sqltext.Effect) {
	for _, c := range changes {
		g.effect(c, nil)
	}
	switch e.Action {
	case sqltext.Set, sqltext.Reset, sqltext.Change:
		if isGate(e.Name) {
			g.change()
		}
	case sqltext.ResetAll, sqltext.DiscardAll, sqltext.Unclear:
		g.change()
	case sqltext.Commit, sqltext.Rollback, sqltext.RollbackTo:
		g.pending = g.pending || g.touched
	}
	if e.Doubt.Any || slices.ContainsFunc(e.Doubt.Names, isGate) {
		g.change()
	}
}

// isGate reports whether a setting decides how text is read.
func isGate(name string) bool {
	return name == "client_encoding" || name == "standard_conforming_strings"
}

func (g *gate) change() { g.touched, g.pending = true, true }

// ready handles ReadyForQuery: all changes have been reported by now.
func (g *gate) ready(idle bool) {
	g.pending = false
	if idle {
		g.touched = false
	}
}

// letters says which characters a text has.
type letters uint8

const (
	otherLetters letters = iota
	asciiLetters         // only ASCII, which reads the same in every encoding
	plainLetters         // only ASCII without backslashes, which reads the same whatever standard_conforming_strings is
)

// text classifies a text. Unseen is why it cannot be read at all, skip why it is not captured although it can.
func (g *gate) text(text letters) (unseen, skip Reason) {
	isASCII := text != otherLetters
	switch {
	case g.pending && text == plainLetters:
		return captured, captured
	case g.pending:
		return Encoding, Encoding
	case !g.conforming:
		return Strings, Strings
	case g.encoding == encodingUTF8, g.encoding != encodingUnknown && isASCII:
		return captured, captured
	case g.encoding == encodingASCII || isASCII:
		return captured, Encoding
	}
	return Encoding, Encoding
}

// params is like text, for the parameters of a Bind message.
func (g *gate) params(isASCII bool) Reason {
	text := otherLetters
	if isASCII {
		text = plainLetters // values are no literals, so that backslashes mean nothing
	}
	_, skip := g.text(text)
	if skip == Strings {
		return captured
	}
	return skip
}

// asciiParams reports whether all textual values are ASCII.
func asciiParams(params []capture.Param) bool {
	for _, p := range params {
		if (p.Format == 0 || textual(p.OID)) && !ascii(p.Value) {
			return false
		}
	}
	return true
}

// lettersOf classifies a text.
func lettersOf(b []byte) letters {
	kind := plainLetters
	for _, c := range b {
		if c >= 0x80 {
			return otherLetters
		}
		if c == '\\' {
			kind = asciiLetters
		}
	}
	return kind
}

func ascii(b []byte) bool {
	for _, c := range b {
		if c >= 0x80 {
			return false
		}
	}
	return true
}

// textual reports whether a type's binary form is its text: name, text, unknown, bpchar, varchar, or 0, a type that the
// server infers (OIDs of pg_type.dat).
func textual(oid uint32) bool {
	switch oid {
	case 0, 19, 25, 705, 1042, 1043:
		return true
	}
	return false
}
