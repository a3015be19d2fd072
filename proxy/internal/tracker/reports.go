package tracker

import (
	"maps"

	"github.com/dpwatch/dpwatch/internal/sqltext"
)

// reports holds the settings that the server reports in ParameterStatus messages: all of them before the first
// ReadyForQuery, later each that has changed, at the latest before the ReadyForQuery that follows.
type reports struct {
	values  map[string]string
	initial map[string]string // of the first ReadyForQuery; nil before
	fresh   map[string]bool   // reported, or believed for a transaction block, since the latest idle ReadyForQuery
}

// report handles a ParameterStatus message with this body; whole is false if the body was not recorded to its end.
func (s *settings) report(body []byte, whole bool) {
	r := reader{b: body}
	name, value := r.cstring(), r.cstring()
	setting := sqltext.Lower(string(name))
	switch setting {
	case "timezone", "datestyle", "intervalstyle", "application_name", "search_path", "session_authorization":
	default:
		return
	}
	if !whole || r.bad {
		delete(s.reports.values, setting)
		s.doubt(sqltext.Doubt{Names: []string{setting}})
		return
	}
	if s.reports.values == nil {
		s.reports.values = map[string]string{}
	}
	if s.reports.fresh == nil {
		s.reports.fresh = map[string]bool{}
	}
	s.reports.values[setting] = string(value)
	s.reports.fresh[setting] = true
}

// lost handles messages that were missed: if the first ReadyForQuery is one of them, the initial values are not known.
func (r *reports) lost() {
	if r.initial == nil {
		r.initial = map[string]string{}
	}
}

// believe handles ReadyForQuery: the values reported last are in force. Inside of a transaction block it is not known
// whether they stay in force after it.
func (s *settings) believe(idle bool) {
	if s.reports.initial == nil {
		s.reports.initial = maps.Clone(s.reports.values)
		if s.reports.initial == nil {
			s.reports.initial = map[string]string{}
		}
		clear(s.reports.fresh)
		return
	}
	if len(s.reports.fresh) == 0 && len(s.now.doubts.names) == 0 && len(s.now.local) == 0 {
		return
	}
	for name, value := range s.reports.values {
		if s.reports.fresh[name] || s.now.doubts.names[name] || s.now.local[name].unknown {
			s.believed(name, value, !idle)
			s.reports.fresh[name] = true
		}
	}
	if idle {
		clear(s.reports.fresh)
	}
}

// believed applies the reported value of a setting. The value at the start of the session is that of RESET.
func (s *settings) believed(name, value string, inBlock bool) {
	e := sqltext.Effect{Action: sqltext.Set, Name: name, Value: value, Local: inBlock}
	if initial, ok := s.reports.initial[name]; ok && initial == value {
		e.Action = sqltext.Reset
		if original, given := s.reset.session[name]; given {
			e.Action, e.Value = sqltext.Set, original
		}
	}
	if inBlock {
		s.now.setLocal(e)
	} else {
		s.now.setSession(e)
	}
	s.view = nil
}
