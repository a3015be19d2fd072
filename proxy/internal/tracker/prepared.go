package tracker

import (
	"slices"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/sqltext"
)

// execution is the prepared statement that an SQL EXECUTE ran, and its arguments, or what a FETCH read. The statement can
// come from SQL or the protocol.
type execution struct {
	before    string // the text before an EXECUTE within another statement
	statement *statement
	skip      Reason // why it is not captured
	params    []capture.Param

	portal *portal // of FETCH; then the fields above, but skip, are not used
	view   *view   // the settings with which its rows were computed
	known  bool    // they belong to an answer that is captured already
}

// executes reports whether a statement runs one that the session holds: EXECUTE, a statement with one within, or FETCH.
func executes(e sqltext.Effect) bool {
	return e.Action == sqltext.Execute || e.Action == sqltext.ExecuteWithin && e.Name != "" || e.Action == sqltext.Fetch
}

// mayChange returns what the statement can change if it is run within another one, which may not run it.
func (s *statement) mayChange() sqltext.Doubt {
	d := s.effect.Doubt
	for _, a := range s.effect.Assignments {
		if a.Name.Param > 0 {
			d.Any = true
		} else {
			d.Names = append(slices.Clip(d.Names), sqltext.Lower(a.Name.Value))
		}
	}
	return d
}

func newExecution(s *statement, e sqltext.Effect) execution {
	x := execution{before: e.Before, statement: s, skip: s.skip}
	if x.skip == captured {
		x.bind(e)
	}
	return x
}

// bind turns the arguments of EXECUTE into parameters in text format.
func (x *execution) bind(e sqltext.Effect) {
	if !e.Plain || len(x.statement.oids) > len(e.Args) {
		x.skip = Arguments
		return
	}
	for i, a := range e.Args {
		p := capture.Param{Null: a.Null}
		if i < len(x.statement.oids) {
			p.OID = x.statement.oids[i]
		}
		value, ok := a.As(p.OID)
		if !ok {
			x.params, x.skip = nil, Arguments
			return
		}
		if !a.Null {
			p.Value = []byte(value)
		}
		x.params = append(x.params, p)
	}
}
