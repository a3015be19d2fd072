package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/dpwatch/dpwatch/internal/finding"
)

// Unused is a setting that has no effect because of other settings.
type Unused struct {
	Path string // of the key; with several engines, of that of one of them: engines[people].claims.rules[1]
	Text string // why it has none, and what to do
}

// Unused returns the settings of a valid configuration that have no effect: rules and routes that match nothing, and
// keys, with values other than their defaults, of what is off. Rules on users and applications that do not exist are
// not found.
func (c Config) Unused() (all []Unused) {
	u := unused{c, "", &all}
	u.alerts()
	engines := c.AllEngines()
	for _, one := range engines {
		u := unused{one, "", &all}
		if len(engines) > 1 && len(one.Engine.Name) > 0 {
			u.prefix = "engines[" + one.Engine.Name + "]."
		}
		u.engine()
	}
	return all
}

// unused collects the unused settings of one engine.
type unused struct {
	Config
	prefix string
	all    *[]Unused
}

func (u unused) add(path, format string, args ...any) {
	*u.all = append(*u.all, Unused{u.prefix + path, fmt.Sprintf(format, args...)})
}

// off adds the keys of a section whose value is not the default, if what they configure is off.
func (u unused) off(on bool, section string, values, defaults any, because string, keys ...string) {
	if on {
		return
	}
	v, d := reflect.ValueOf(values), reflect.ValueOf(defaults)
	for i := range v.NumField() {
		key, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("yaml"), ",")
		empty := v.Field(i).Kind() == reflect.Slice && v.Field(i).Len() == 0 && d.Field(i).Len() == 0
		if slices.Contains(keys, key) && !empty && !reflect.DeepEqual(v.Field(i).Interface(), d.Field(i).Interface()) {
			u.add(section+"."+key, "has no effect: %s", because)
		}
	}
}

// covered adds the items of a list whose fields are at least those of an earlier one: the first that matches counts.
func (u unused) covered(path string, items [][]string) {
	for j := range items {
		for i := range items[:j] {
			covers := true
			for k, want := range items[i] {
				covers = covers && (want == "" || want == items[j][k])
			}
			if covers {
				u.add(fmt.Sprintf("%s[%d]", path, j), "matches nothing: %s[%d] matches all that it does, and the first that matches counts; move it up, or remove it", path, i)
				break
			}
		}
	}
}

// alerts finds what of the section alerts is unused.
func (u unused) alerts() {
	a, engines := u.Alerts, u.AllEngines()
	var routes [][]string
	for i, r := range a.Routes {
		path := fmt.Sprintf("alerts.routes[%d]", i)
		routes = append(routes, []string{string(r.Kind), r.Database, r.User, r.Engine, string(r.Severity)})
		if r.Engine != "" && !slices.Contains(u.EngineNames(), r.Engine) {
			u.add(path+".engine", "matches nothing: there is no engine %q; the engines are %s", r.Engine, strings.Join(u.EngineNames(), ", "))
		}
		if r.Database != "" && !slices.ContainsFunc(engines, func(c Config) bool { return c.Privacy.Database == "" || c.Privacy.Database == r.Database }) {
			u.add(path+".database", "matches nothing: sessions in database %q are not audited (privacy.database)", r.Database)
		}
		if why := u.neverSent(engines)[r.Kind]; why != "" {
			u.add(path+".kind", "matches nothing: there are no alerts %s, because %s", r.Kind, why)
		}
	}
	u.covered("alerts.routes", routes)
	none := Default().Alerts
	u.off(a.Coverage.Share > 0, "alerts.coverage", a.Coverage, none.Coverage, "alerts.coverage.share is 0", "after")
}

// neverSent returns the kinds of alerts that there are none of, with the reason.
func (u unused) neverSent(engines []Config) map[finding.Kind]string {
	never := map[finding.Kind]string{}
	if !u.Alerts.Suspected {
		never[finding.Unconfirmed] = "alerts.suspected is false"
	}
	if !slices.ContainsFunc(engines, func(c Config) bool { return c.Shadow.TwinSchema() != "" }) {
		never[finding.CopiesDiffer] = "shadow.twin names no twin of D0"
	}
	if u.Alerts.Coverage.Share == 0 {
		never[finding.CoverageLow] = "alerts.coverage.share is 0"
	}
	if !slices.ContainsFunc(engines, func(c Config) bool { return len(c.Budgets) > 0 }) {
		never[finding.BudgetExceeded] = "budgets is empty"
	}
	if !slices.ContainsFunc(engines, func(c Config) bool {
		r := c.Privacy.UnclaimedReads
		return r.Policy == "alert" || slices.ContainsFunc(r.Rules, func(r UnclaimedRule) bool { return r.Policy == "alert" })
	}) {
		never[finding.UnclaimedRead] = "no policy of privacy.unclaimed_reads is alert"
	}
	return never
}

// engine finds what is unused of the sections of one engine.
func (u unused) engine() {
	c, d := u.Claims, Default()
	var rules, reads [][]string
	for i, r := range c.Rules {
		rules = append(rules, []string{r.User, r.Database, r.ApplicationName, r.Table, r.Pattern})
		u.reach(fmt.Sprintf("claims.rules[%d].database", i), r.Database)
	}
	u.covered("claims.rules", rules)
	for i, r := range u.Privacy.UnclaimedReads.Rules {
		reads = append(reads, []string{r.User, r.Database, r.ApplicationName, r.Table, r.Pattern})
		u.reach(fmt.Sprintf("privacy.unclaimed_reads.rules[%d].database", i), r.Database)
	}
	u.covered("privacy.unclaimed_reads.rules", reads)
	if len(c.SecurityLabels) > 0 && len(c.Functions) == 0 {
		u.add("claims.security_labels", "has no effect: a label claims the epsilon of a function of claims.functions, and there is none")
	}
	if slices.Contains(c.Trust, "setting") && c.Settings == (Settings{}) {
		u.add("claims.trust", "setting has no effect: claims.settings names none")
	}
	u.off(len(c.Functions) > 0, "claims", c, d.Claims, "claims.functions is empty", "combine")
	u.off(u.Audit.Sequences, "audit", u.Audit, d.Audit, "audit.sequences is false", "sequence_composition")
	u.off(u.Audit.Hoist, "audit", u.Audit, d.Audit, "audit.hoist is false", "hoist_space")
	n := u.Neighbours
	u.off(n.Source != "", "neighbours", n, d.Neighbours, "neighbours.source is empty: the copies are hand-made",
		"relation", "method", "copy_limit", "grant", "choose", "measures")
	if n.Source != "" && n.Relation == "remove" && len(n.Measures) > 0 {
		u.add("neighbours.measures", "has no effect: it is for the relations replace and extreme")
	}
	u.off(u.LedgerDSN() != "", "ledger", u.Ledger, d.Ledger, "there is no ledger (ledger.dsn)", "schema", "migrate", "retention", "statements", "spool")
}

// reach adds a rule on a database that no audited query reads.
func (u unused) reach(path, database string) {
	if database != "" && u.Privacy.Database != "" && database != u.Privacy.Database {
		u.add(path, "matches nothing: sessions in database %q are not audited (privacy.database)", database)
	}
}
