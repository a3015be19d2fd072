package judge

import (
	"cmp"
	"slices"
	"strings"

	pg_query "github.com/pganalyze/pg_query_go/v5"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/pg/builtin"
	"github.com/dpwatch/dpwatch/internal/pgparse"
	"github.com/dpwatch/dpwatch/rewrite/reasons"
)

// session refuses what depends on the session of the client.
type session struct {
	findings *findings
	shown    *shown
	query    capture.Query
	rules    *Rules
}

// changed reports whether a function reads a setting that may have changed, and then refuses the call.
func (e *session) changed(node string, offset int32, function string, settings ...string) bool {
	for _, name := range settings {
		if e.query.Doubt.Has(name) {
			e.findings.Refuse(reasons.SettingsUncertain, node, offset, "function "+function+" reads the setting "+name+", which the session may have changed",
				"set it again after calls of functions that change settings")
			return true
		}
	}
	return false
}

// readsKnownSetting reports whether a call of current_setting reads a setting that a replay sets from Plan.Settings.
func (e *session) readsKnownSetting(n *pg_query.FuncCall) bool {
	if len(n.GetArgs()) == 0 {
		return false
	}
	name := strings.ToLower(pgparse.Text(n.GetArgs()[0]))
	return AffectsResult(name) && !e.changed("FuncCall", n.GetLocation(), "current_setting", name)
}

// formsInDoubt reports whether a setting that a replay sets, or would set, may have changed.
func (e *session) formsInDoubt() bool {
	for name := range e.query.Settings {
		if AffectsResult(name) && e.query.Doubt.Has(name) {
			return true
		}
	}
	return slices.ContainsFunc(builtin.Forms(), e.query.Doubt.Has)
}

// inDatabase checks the database of a qualified name.
func (e *session) inDatabase(name, node string, offset int32) bool {
	if name == "" || name == cmp.Or(e.rules.options.Database, e.query.Database) {
		return true
	}
	e.findings.Refuse(reasons.AmbiguousName, node, offset, "a name is qualified with a database other than that of the session", "remove the database: the server accepts only the current one").mayBeProtected = true
	return false
}

// systemUser checks SYSTEM_USER, which the parser resolves as a call. Before PostgreSQL 16 it is a column of that name.
func (e *session) systemUser(n *pg_query.FuncCall) {
	functions := e.rules.functions
	if _, exists := functions.unlisted("system_user"); functions.source != nil && functions.shadow != nil && !exists || e.shown.isShown(n) {
		return
	}
	e.findings.refuseSession("system_user", "FuncCall", n.GetLocation())
}
