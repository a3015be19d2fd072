package tracker

import (
	"cmp"
	"maps"
	"strings"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/sqltext"
)

// Limits of the settings kept for a session; what exceeds them is in doubt.
const (
	maxSettings     = 256
	maxSettingBytes = 4 << 10
	maxSavepoints   = 256
)

type savepoint struct {
	name string
	at   layer
}

// settings follows the settings of a session through its transactions: a rollback of the transaction, or to a
// savepoint, undoes SET.
type settings struct {
	reset layer // the values of RESET, from the startup message
	now   layer

	open       bool  // a transaction is open; base is the state that its rollback restores
	base       layer // valid while open
	block      bool  // the transaction was opened by BEGIN
	failed     bool  // an error occurred in the block
	mayCommit  bool  // the transaction, without a block, may have been committed in the middle
	savepoints []savepoint

	reports reports
	view    *view                 // the view of now; nil if it must be rebuilt
	matters func(sql string) bool // see Config.MaybeProtected; nil = every statement does
}

func newSettings(s Startup, matters func(sql string) bool) settings {
	m := maps.Clone(s.Settings)
	if m == nil {
		m = map[string]string{}
	}
	if s.ApplicationName != "" {
		m["application_name"] = s.ApplicationName
	}
	l := layer{session: m, temps: temps{unknown: searchesTemp(m["search_path"])}}
	if s.SettingsUncertain {
		l.doubts.call(capture.UnknownCode)
	}
	return settings{reset: l, now: l, matters: matters}
}

// apply applies the effect of a completed statement, whose calls of set_config made these changes; tag is its command
// tag.
func (s *settings) apply(e sqltext.Effect, changes []sqltext.Effect, tag string) {
	if e.Inert() || s.recorded(e) {
		return
	}
	s.begin()
	s.view = nil
	if e.MayCommit && !s.block {
		s.mayCommit = true
		s.doubtLocal()
	}
	switch e.Action {
	case sqltext.Set, sqltext.Reset, sqltext.Change:
		s.set(e)
	case sqltext.ResetAll:
		s.resetAll()
	case sqltext.DiscardAll:
		s.now = s.reset
		if !s.block { // what came before in a pipeline is committed, too
			s.end(false, false)
		}
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
		s.doubtAll()
	}
	for _, c := range changes {
		s.set(c)
	}
	s.temporary(e, tag)
	s.doubt(e.Doubt)
}

// temporary applies what a statement does to the temporary relations. tag is its command tag.
func (s *settings) temporary(e sqltext.Effect, tag string) {
	for _, c := range e.Temps {
		s.now.temps = s.now.temps.after(c, func(name string) *capture.Temp { return s.define(name, c, tag) })
		s.view = nil
	}
	s.now.temps.unknown = s.now.temps.unknown || e.UnknownTemp
}

// define returns the definition that a statement gives to a temporary relation; nil if it only fills it with rows, or
// names nothing that matters. A statement within a body has no text: then only a table's rows are harmless.
func (s *settings) define(name string, c sqltext.TempChange, tag string) *capture.Temp {
	isView := c.IsView || c.View != ""
	text := cmp.Or(c.Rest, c.SQL) // without CREATE or ALTER: what they define is seen by this session alone
	switch {
	case c.SQL == "" && !isView && c.Extended == "", c.Made != "" && !isView && !strings.HasPrefix(tag, "CREATE"), tag == "CREATE TABLE AS", tag == "CREATE SEQUENCE":
		return nil
	case c.SQL != "" && !s.mayMatter(text):
		return nil
	case !isView || s.now.temps.size()+len(c.SQL) > maxDefinitions:
		return &capture.Temp{Name: strings.Clone(name)}
	}
	v := s.current()
	d := &capture.Temp{Name: strings.Clone(name), View: strings.Clone(c.SQL), Doubt: v.doubt}
	for _, setting := range nameSettings {
		if value, ok := v.settings[setting]; ok {
			d.Settings = with(d.Settings, setting, value)
		}
	}
	return d
}

// nameSettings are the settings on which the meaning of names depends.
var nameSettings = append([]string{"search_path"}, roles[:]...)

// mayMatter reports whether a statement names something that matters, or a temporary relation that does.
func (s *settings) mayMatter(sql string) bool {
	return s.now.temps.mayMatter(s.matters, sql)
}

// recorded reports whether a statement has no effect but calls that are recorded already.
func (s *settings) recorded(e sqltext.Effect) bool {
	calls := e.Doubt.Calls
	e.Doubt.Calls = nil
	return e.Inert() && s.now.doubts.called(calls)
}

// doubt records what a statement may have changed unseen.
func (s *settings) doubt(d sqltext.Doubt) {
	if d.None() {
		return
	}
	s.view = nil
	for _, name := range d.Names {
		s.set(sqltext.Effect{Action: sqltext.Change, Name: name})
	}
	for _, f := range d.Calls {
		s.now.doubts.call(f)
	}
	if d.Any {
		s.doubtAll()
	}
}

// doubtAll records that code of unknown effect ran.
func (s *settings) doubtAll() {
	s.now.unknown(s.reports)
	s.view = nil
}

// doubtLocal records that what SET LOCAL set may be in force no more.
func (s *settings) doubtLocal() {
	for name := range s.now.local {
		s.now.local = with(s.now.local, name, local{unknown: true})
	}
}

func (s *settings) begin() {
	if !s.open {
		s.open, s.base = true, s.now
	}
}

// end closes the transaction; with chain the next one is opened at once. A rollback does not undo what was committed in
// the middle.
func (s *settings) end(chain, rollback bool) {
	if rollback && s.open {
		before := s.now
		if s.now = s.base; s.mayCommit {
			s.now.either(before)
		}
	}
	s.now.local, s.now.temps = nil, s.now.temps.committed()
	s.open, s.block, s.failed, s.mayCommit, s.savepoints, s.view = false, false, false, false, nil, nil
	if chain {
		s.begin()
		s.block = true
	}
}

// fail handles the error of a statement with this effect. Outside a block it undoes everything since the transaction
// began, unless the statement, or one before it, may have committed. Inside a block the client must roll back first,
// and the settings are not read before that.
func (s *settings) fail(e sqltext.Effect) {
	if s.block {
		s.failed = true
		return
	}
	s.mayCommit = s.mayCommit || e.MayCommit
	s.end(false, true)
	if e.MayCommit {
		s.temporary(e, "")
		s.doubt(e.Doubt)
	}
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
	} else {
		s.begin()
		s.block = true
	}
	s.believe(idle)
}

// poison handles a statement that is not known: it can have changed all tracked state.
func (s *settings) poison() {
	for _, l := range []*layer{&s.now, &s.base} {
		l.unknown(s.reports)
		l.temps.unknown = true
	}
	for i := range s.savepoints {
		s.savepoints[i].at.unknown(s.reports)
		s.savepoints[i].at.temps.unknown = true
	}
	s.view = nil
}

// unseen handles the unknown end of the transaction, if one is open: only what it changed is uncertain.
func (s *settings) unseen() {
	if s.open {
		s.now.either(s.base)
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

// set applies SET, RESET, or a change to an unknown value.
func (s *settings) set(e sqltext.Effect) {
	if len(s.now.session)+len(s.now.local) >= maxSettings || len(e.Name)+len(e.Value) > maxSettingBytes {
		e.Action, e.Name = sqltext.Change, e.Name[:min(len(e.Name), maxSettingBytes)]
	}
	if e.Name == "search_path" && (searchesTemp(e.Value) || e.Action == sqltext.Change) {
		s.now.temps.unknown = true // objects created without a schema may now be temporary
	}
	action := e.Action
	if original, given := s.reset.session[e.Name]; action == sqltext.Reset && given {
		e.Action, e.Value = sqltext.Set, original
	}
	if e.Local {
		s.now.setLocal(e)
	} else {
		s.now.setSession(e)
	}
	if e.Name == "session_authorization" {
		s.setRole(action, e.Local)
	}
}

// setRole resets the role, as the server does when SET SESSION AUTHORIZATION (or RESET, or an unknown change of it)
// runs.
func (s *settings) setRole(action sqltext.Action, local bool) {
	role := sqltext.Effect{Action: action, Name: "role", Local: local}
	if _, given := s.reset.session["role"]; action == sqltext.Set {
		if role.Value = "none"; !given {
			role.Action = sqltext.Reset
		}
	}
	s.set(role)
}

// searchesTemp reports whether a search_path can include the temporary schema.
func searchesTemp(path string) bool { return strings.Contains(sqltext.Lower(path), "pg_temp") }

// resetAll applies RESET ALL, which does not reset the role.
func (s *settings) resetAll() {
	m := maps.Clone(s.reset.session)
	for _, name := range roles {
		delete(m, name)
		if v, ok := s.now.session[name]; ok {
			m[name] = v
		}
	}
	kept := map[string]local{}
	for _, name := range roles {
		if l, ok := s.now.local[name]; ok {
			kept[name] = l
		}
	}
	s.now.session, s.now.local = m, kept
	s.now.doubts.reset()
}
