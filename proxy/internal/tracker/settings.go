package tracker

import (
	"maps"
	"strings"

	"github.com/dpwatch/dpwatch/internal/sqltext"
)

// Limits of the settings kept for a session; beyond them the settings become uncertain.
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

// layer is the state of all settings at one moment. Its maps are replaced, never changed.
type layer struct {
	session   map[string]string
	local     map[string]local // overrides session until the transaction ends
	uncertain bool
	temps     temps
}

type savepoint struct {
	name string
	at   layer
}

// settings follows the settings of a session through its transactions: a rollback of the transaction, or to a savepoint,
// undoes SET.
type settings struct {
	reset layer // the values of RESET, from the startup message
	now   layer

	open       bool  // a transaction is open; base is the state that its rollback restores
	base       layer // valid while open
	block      bool  // the transaction was opened by BEGIN
	failed     bool  // an error occurred in the block
	savepoints []savepoint

	view *view // the view of now; nil if it must be rebuilt
}

// view holds the settings as captured queries report them.
type view struct {
	settings  map[string]string
	app       string
	uncertain bool
	temps     temps
}

// same reports whether two views are equal; v may be nil.
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

// current returns the settings in force. The view is shared and must not be changed.
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

// apply applies the effect of a completed statement; tag is its command tag.
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

func (s *settings) begin() {
	if !s.open {
		s.open, s.base = true, s.now
	}
}

// end closes the transaction; with chain the next one is opened at once.
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

// fail handles an error. Outside a block it undoes everything since the transaction began. Inside a block the client must
// roll back first, and the settings are not read before that.
func (s *settings) fail() {
	if s.block {
		s.failed = true
		return
	}
	s.end(false, true)
}

// ready handles the transaction status of ReadyForQuery, which is authoritative: if it contradicts the tracked state, a
// statement was missed.
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

// poison handles a statement with unknown effect: all tracked state becomes uncertain.
func (s *settings) poison() {
	s.now.uncertain, s.base.uncertain = true, true
	for i := range s.savepoints {
		s.savepoints[i].at.uncertain = true
	}
	s.view = nil
}

// unseen handles the unknown end of the transaction, if one is open: only what it changed is uncertain.
func (s *settings) unseen() {
	if s.open && !maps.Equal(s.base.session, s.now.session) {
		s.poison()
	}
	if s.open && !s.base.temps.same(s.now.temps) {
		s.loseTemps()
	}
	s.end(false, false)
}

// loseTemps handles the unknown creation of temporary relations.
func (s *settings) loseTemps() {
	s.now.temps.unknown, s.base.temps.unknown = true, true
	s.view = nil
}

func (s *settings) savepoint(name string) {
	if len(s.savepoints) >= maxSavepoints {
		s.poison()
		return
	}
	s.savepoints = append(s.savepoints, savepoint{name, s.now})
}

// backTo rolls back to the latest savepoint of that name, which stays, or releases it and all later ones.
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
		s.now.temps.unknown = true // objects created without a schema may now be temporary
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
		delete(m, "role") // as the server does
	}
	s.now.session = m
	if _, hidden := s.now.local[e.Name]; hidden {
		s.now.local = maps.Clone(s.now.local)
		delete(s.now.local, e.Name)
	}
}

// searchesTemp reports whether a search_path can include the temporary schema.
func searchesTemp(path string) bool { return strings.Contains(sqltext.Lower(path), "pg_temp") }

// resetAll applies RESET ALL, which does not reset the role. Uncertain settings stay uncertain, because the role may be one
// of them.
func (s *settings) resetAll() {
	m := maps.Clone(s.reset.session)
	for _, name := range [...]string{"role", "session_authorization"} {
		if v, ok := s.now.session[name]; ok {
			m[name] = v
		}
	}
	s.now.session, s.now.local = m, nil
}
