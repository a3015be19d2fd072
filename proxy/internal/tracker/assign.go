package tracker

import (
	"slices"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/sqltext"
)

// assignments returns what calls of set_config changed, with the parameters of their statement. unknown is true if it
// is not known which settings they changed.
func (sess *session) assignments(calls []sqltext.Assignment, params []capture.Param) (changes []sqltext.Effect, unknown bool) {
	for _, c := range calls {
		name, null, ok := sess.operand(c.Name, params)
		if !ok || null {
			unknown = true
			continue
		}
		e := sqltext.Effect{Action: sqltext.Set, Name: sqltext.Lower(name)}
		e.Value, null, ok = sess.operand(c.Value, params)
		switch {
		case !ok:
			e.Action, e.Value = sqltext.Change, ""
		case null:
			e.Action = sqltext.Reset
		}
		if e.Local, ok = sess.flag(c.Local, params); !ok {
			e.Action, e.Value = sqltext.Change, ""
		}
		changes = append(changes, e)
	}
	return changes, unknown
}

// operand returns the text of an argument; ok is false if it is not known.
func (sess *session) operand(o sqltext.Operand, params []capture.Param) (text string, null, ok bool) {
	if o.Param == 0 {
		return o.Value, o.Null, true
	}
	if o.Param > len(params) {
		return "", false, false
	}
	p := params[o.Param-1]
	known := textual(p.OID) && (ascii(p.Value) || sess.gate.encoding == encodingUTF8)
	return string(p.Value), p.Null, known || p.Null
}

// flag returns the value of a boolean argument; ok is false if it is not known. NULL is false, as for set_config.
func (sess *session) flag(o sqltext.Operand, params []capture.Param) (value, ok bool) {
	if o.Param > len(params) {
		return false, false
	}
	p := capture.Param{Value: []byte(o.Value), Null: o.Null}
	if o.Param > 0 {
		p = params[o.Param-1]
	}
	switch {
	case p.Null:
		return false, true
	case p.OID != 0 && p.OID != oidBool:
		return false, false
	case p.Format == 1:
		return len(p.Value) == 1 && p.Value[0] != 0, len(p.Value) == 1
	}
	return sqltext.ParseBool(string(p.Value))
}

// oidBool is the OID of the type boolean (pg_type.dat).
const oidBool = 16

// analyze returns the effect of a statement whose text passed the gate. In an encoding that only resembles ASCII,
// values and names with other characters are not known.
func (sess *session) analyze(sql string, text letters) sqltext.Effect {
	e := sqltext.Analyze(sql)
	if text != otherLetters || sess.gate.encoding == encodingUTF8 {
		return e
	}
	foreign := func(s string) bool { return !ascii([]byte(s)) }
	if e.Action == sqltext.Set && foreign(e.Value) {
		e.Action, e.Value = sqltext.Change, ""
	}
	for _, a := range e.Assignments {
		switch {
		case foreign(a.Name.Value), foreign(a.Value.Value) && a.Name.Param > 0:
			e.Doubt.Any = true
		case foreign(a.Value.Value):
			e.Doubt.Names = append(e.Doubt.Names, sqltext.Lower(a.Name.Value))
		}
	}
	if slices.ContainsFunc(e.Temps, func(c sqltext.TempChange) bool { return foreign(c.Made + c.View + c.New) }) {
		e.UnknownTemp = true
	}
	return e
}

// ownDoubt returns what a statement can change itself, and therefore before it reads the settings.
func ownDoubt(e sqltext.Effect) capture.Doubt {
	if e.Inert() {
		return capture.Doubt{}
	}
	var d capture.Doubt
	d.Names = append(d.Names, e.Doubt.Names...)
	unknown := e.Doubt.Any || e.Action == sqltext.Unclear
	for _, a := range e.Assignments {
		if a.Name.Param > 0 {
			unknown = true
		} else {
			d.Names = append(d.Names, sqltext.Lower(a.Name.Value))
		}
	}
	slices.Sort(d.Names)
	if unknown {
		d.Calls = []capture.Calls{{Functions: []string{capture.UnknownCode}}}
	}
	return d
}
