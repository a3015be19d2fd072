package tracker

import (
	"maps"
	"strings"

	"github.com/dpwatch/dpwatch/internal/sqltext"
)

// Limits of what is remembered of a session's settings; beyond them the settings become uncertain.
const (
	maxSettings     = 256
	maxSettingBytes = 4 << 10
	maxSavepoints   = 256
)

// local is a setting made by SET LOCAL: a value, or the default.
type local struct {
	value     string
	isDefault bool
}

// layer is the state of all settings at one moment. Its maps are never changed, only replaced.
type layer struct {
	session   map[string]string
	local     map[string]local // hides session until the transaction ends
	uncertain bool
	temps     temps
}

type savepoint struct {
	name string
	at   layer
}

// settings follows the settings of a session through its transactions: what SET makes is undone when the
// transaction, or the part of it behind a savepoint, is rolled back.
type settings struct {
	reset layer // what RESET goes back to: the startup message's
	now   layer

	open       bool  // a transaction is open, and base is what its rollback restores
	base       layer // valid while open
	block      bool  // the transaction was opened by BEGIN
	failed     bool  // an error was seen in the block
	savepoints []savepoint

	view *view // of now; nil when it has to be made anew
}

// view is what captured queries are told of the settings.
type view struct {
	settings  map[string]string
	app       string
	uncertain bool
	temps     temps
}

// same reports whether nothing changed between two views, of which the first may not be known.
func (v *view) same(other *view) bool {
	return v == other || v != nil && v.uncertain == other.uncertain && maps.Equal(v.settings, other.settings) && v.temps.same(other.temps)
}

func newSettings(s Startup) settings {
	m := maps.Clone(s.Settings)
	if m == nil {
		m = map[string]string{}
	}
	if s.ApplicationName != "" {
		m["application_name"] = s.ApplicationName
	}
	l := layer{session: m, uncertain: s.SettingsUncertain, temps: temps{unknown: searchesTemp(m["search_path"])}}
	return settings{reset: l, now: l}
}

// current returns the settings in force. The view is shared and not to be changed.
func (s *settings) current() *view {
	if s.view != nil {
		return s.view
	}
	m := maps.Clone(s.now.session)
	for name, v := range s.now.local {
		if v.isDefault {
			delete(m, name)
		} else {
			m[name] = v.value
		}
	}
	v := &view{app: m["application_name"], uncertain: s.now.uncertain || s.now.temps.unknown, temps: s.now.temps}
	delete(m, "application_name")
	delete(m, "client_encoding")
	if len(m) > 0 {
		v.settings = m
	}
	s.view = v
	return v
}

// apply does what a completed statement did; tag is its command tag.
func (s *settings) apply(e sqltext.Effect, tag string) {
	if e.Inert() {
		return
	}
	s.begin()
	s.view = nil
	switch e.Action {
	case sqltext.Set, sqltext.Reset:
		s.set(e)
	case sqltext.ResetAll:
		s.resetAll()
	case sqltext.DiscardAll:
		s.now = s.reset
	case sqltext.DiscardTemp:
		s.now.temps = temps{unknown: searchesTemp(s.current().settings["search_path"])}
		s.view = nil
	case sqltext.Begin:
		s.block = true
	case sqltext.Commit:
		s.end(e.Chain, tag == "ROLLBACK") // COMMIT of a failed transaction
	case sqltext.Rollback:
		s.end(e.Chain, true)
	case sqltext.Savepoint:
		s.savepoint(e.Name)
	case sqltext.RollbackTo, sqltext.Release:
		s.backTo(e.Name, e.Action == sqltext.RollbackTo)
	case sqltext.Unclear:
		s.now.uncertain = true
	}
	if e.Hidden {
		s.now.uncertain = true
	}
	if e.UnknownTemp {
		s.now.temps.unknown = true
	}
	if e.Temp != nil {
		s.now.temps = s.now.temps.after(*e.Temp)
	}
}

// begin opens a transaction if none is.
func (s *settings) begin() {
	if !s.open {
		s.open, s.base = true, s.now
	}
}

// end closes the transaction; with chain the next one is open at once.
func (s *settings) end(chain, rollback bool) {
	if rollback && s.open {
		s.now = s.base
	}
	s.now.local, s.now.temps = nil, s.now.temps.committed()
	s.open, s.block, s.failed, s.savepoints, s.view = false, false, false, nil, nil
	if chain {
		s.begin()
		s.block = true
	}
}

// fail notes an error: outside a block everything since the transaction began is undone. Inside one, the
// client has to roll back, and nothing reads the settings before.
func (s *settings) fail() {
	if s.block {
		s.failed = true
		return
	}
	s.end(false, true)
}

// ready takes the transaction status of ReadyForQuery, which is certain: where it contradicts what was
// followed, something was missed.
func (s *settings) ready(status byte) {
	idle := status == 'I'
	if idle && s.block && s.failed { // COMMIT itself failed
		s.end(false, true)
	}
	if idle == s.block {
		s.poison()
	}
	if idle {
		if s.open {
			s.end(false, false)
		}
		return
	}
	s.begin()
	s.block = true
}

// poison notes that a statement did something unknown: no state kept is certain any more.
func (s *settings) poison() {
	s.now.uncertain, s.base.uncertain = true, true
	for i := range s.savepoints {
		s.savepoints[i].at.uncertain = true
	}
	s.view = nil
}

func (s *settings) savepoint(name string) {
	if len(s.savepoints) >= maxSavepoints {
		s.poison()
		return
	}
	s.savepoints = append(s.savepoints, savepoint{name, s.now})
}

// backTo rolls back to the youngest savepoint of that name, which stays, or releases it and all after it.
func (s *settings) backTo(name string, rollback bool) {
	for i := len(s.savepoints) - 1; i >= 0; i-- {
		if s.savepoints[i].name != name {
			continue
		}
		if !rollback {
			s.savepoints = s.savepoints[:i]
			return
		}
		s.now, s.failed = s.savepoints[i].at, false
		s.savepoints = s.savepoints[:i+1]
		return
	}
	s.poison()
}

func (s *settings) set(e sqltext.Effect) {
	if len(s.now.session)+len(s.now.local) >= maxSettings || len(e.Name)+len(e.Value) > maxSettingBytes {
		s.poison()
		return
	}
	if e.Name == "search_path" && searchesTemp(e.Value) {
		s.now.temps.unknown = true // what is created without a schema may be temporary now
	}
	if e.Local {
		m := maps.Clone(s.now.local)
		if m == nil {
			m = map[string]local{}
		}
		m[e.Name] = local{value: e.Value, isDefault: e.Action == sqltext.Reset}
		s.now.local = m
		return
	}
	m := maps.Clone(s.now.session)
	if original, ok := s.reset.session[e.Name]; e.Action == sqltext.Set {
		m[e.Name] = e.Value
	} else if ok {
		m[e.Name] = original
	} else {
		delete(m, e.Name)
	}
	if e.Name == "session_authorization" {
		delete(m, "role") // the server sets it to none
	}
	s.now.session = m
	if _, hidden := s.now.local[e.Name]; hidden {
		s.now.local = maps.Clone(s.now.local)
		delete(s.now.local, e.Name)
	}
}

// searchesTemp reports whether a search_path may name the temporary schema.
func searchesTemp(path string) bool { return strings.Contains(lower(path), "pg_temp") }

// resetAll does RESET ALL, which leaves the role alone. It does not make uncertain settings certain: the role
// may be one of them.
func (s *settings) resetAll() {
	m := maps.Clone(s.reset.session)
	for _, name := range [...]string{"role", "session_authorization"} {
		if v, ok := s.now.session[name]; ok {
			m[name] = v
		}
	}
	s.now.session, s.now.local = m, nil
}
