package config

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/dpwatch/dpwatch/internal/curve"
	"github.com/dpwatch/dpwatch/internal/pg/ident"
)

// validate adds the errors that decoding does not find. A path that has an error already gets no second one.
func (d *decoder) validate(c *Config) {
	process, engines := processSections{d.faults, d.files}, engineSections{d.faults}
	process.routes(c)
	process.proxy(&c.Proxy)
	engines.allEngines(c)
	process.alerts(&c.Alerts)
	process.admin(c)
	d.oneOf("log.level", c.Log.Level, "debug", "info", "warn", "error")
	d.oneOf("log.reveal", c.Log.Reveal, RevealNone, RevealSQL, RevealValues)
}

// processSections validates the sections that all engines share.
type processSections struct {
	*faults
	files bool // check the files that the configuration names
}

// engineSections validates the sections of one engine, or of each.
type engineSections struct{ *faults }

// engine validates the sections of one engine.
func (e *engineSections) engine(c *Config) {
	e.neighbours(c)
	e.shadow(&c.Shadow)
	e.privacy(&c.Privacy)
	e.unclaimed(c.Privacy.UnclaimedReads, c.Privacy.Protected)
	e.claims(&c.Claims, c.Privacy.Protected, c.Privacy.Catalog)
	e.audit(&c.Audit)
	e.ledger(c)
	e.budgets(c)
}

func (s *processSections) proxy(p *Proxy) {
	s.atLeast("proxy.max_sessions", p.MaxSessions, 1)
	s.atLeastBytes("proxy.max_statement", p.MaxStatement, 1)
	if p.IdleTimeout < 0 {
		s.add("proxy.idle_timeout", "must not be negative; 0s = none")
	}
	if p.DrainTimeout < 0 {
		s.add("proxy.drain_timeout", "must not be negative")
	}
}

func (e *engineSections) shadow(s *Shadow) {
	if s.DSN == "" {
		e.add("shadow.dsn", "missing: the database with the neighbouring copies, for example postgres://user:${PASSWORD}@host:5432/shadow")
	}
	e.connection("shadow.dsn", s.DSN)
	if s.D0 == "" {
		e.add("shadow.d0", "must name the schema that holds D0")
	}
	if len(s.D1) == 0 {
		e.add("shadow.d1", "must name at least one schema that holds a neighbour of D0")
	}
	for i, name := range s.D1 {
		path := fmt.Sprintf("shadow.d1[%d]", i)
		switch {
		case name == "":
			e.add(path, "must name a schema")
		case name == s.D0:
			e.add(path, "is the schema of D0: a neighbour must be another schema")
		case slices.Index(s.D1, name) < i:
			e.add(path, "%q is listed twice", name)
		}
	}
	if twin := s.TwinSchema(); twin != "" && slices.Contains(s.Copies(), twin) {
		e.add("shadow.twin", "is also shadow.d0 or in shadow.d1: the twin is a separate schema with the rows of D0")
	}
	if guard := s.GuardSchema(); guard != "" && slices.Contains(append(s.Copies(), s.TwinSchema()), guard) {
		e.add("shadow.guard", "is also shadow.d0, shadow.twin or in shadow.d1: the guard is a separate schema with the rows of D0")
	}
	e.engines(s)
	e.positive("shadow.statement_timeout", s.StatementTimeout)
	e.atLeast("shadow.max_rows", s.MaxRows, 1)
	e.atLeastBytes("shadow.max_result", s.MaxResult, 1<<10)
}

func (e *engineSections) privacy(p *Privacy) {
	if len(p.Protected) == 0 {
		e.add("privacy.protected", "missing: the tables with personal data, as schema.table")
	}
	e.connection("privacy.catalog", p.Catalog)
	seen := map[string]string{}
	for i, name := range p.Protected {
		path := fmt.Sprintf("privacy.protected[%d]", i)
		e.table(path, name)
		bare := ident.ParseTable(name).Name
		switch other, ok := seen[bare]; {
		case ok && other == name:
			e.add(path, "%q is listed twice", name)
		case ok:
			e.add(path, "%q and %q have the same name: a neighbour schema can hold only one table of that name", other, name)
		}
		seen[bare] = name
	}
	for i, name := range p.Public {
		path := fmt.Sprintf("privacy.public[%d]", i)
		e.table(path, name)
		if slices.Contains(p.Protected, name) {
			e.add(path, "%q is also protected: a table is either protected or public", name)
		}
	}
}

// answerPrefix matches the values of claims.answer.
var answerPrefix = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.]{0,59}$`)

func (e *engineSections) claims(c *Claims, protected []string, catalog Secret) {
	if c.Combine != "add" && c.Combine != "share" {
		e.add("claims.combine", "must be add (each DP function spends its own epsilon) or share (one epsilon for the query)")
	}
	if c.Answer != "" && !answerPrefix.MatchString(c.Answer) {
		e.add("claims.answer", "must be the part of the names before the last point, at most 60 letters, digits and underscores: dp for dp.epsilon=1.5")
	}
	if c.Ask != "" && !strings.Contains(c.Ask, "$1") {
		e.add("claims.ask", "must be a query that takes the statement as $1: SELECT epsilon, delta FROM dp_cost($1)")
	}
	for i, t := range c.Trust {
		e.oneOf(fmt.Sprintf("claims.trust[%d]", i), t, "comment", "setting")
	}
	if len(c.SecurityLabels) > 0 && catalog == "" {
		e.add("claims.security_labels", "needs privacy.catalog, the engine's database, which has the labels")
	}
	for i, f := range c.Functions {
		path := fmt.Sprintf("claims.functions[%d]", i)
		if f.Name == "" {
			e.add(path+".name", "missing: the name of the function")
		} else {
			e.function(path+".name", f.Name)
		}
		if f.Epsilon == 0 && f.EpsilonName == "" {
			e.add(path+".epsilon", "missing: the position of the epsilon argument, -1 for the last, or its epsilon_name")
		}
		switch {
		case f.Unit != "" && !slices.Contains(curve.Units(), f.Unit):
			e.add(path+".unit", "must be mu or rho if the argument at epsilon is the parameter of a curve, otherwise empty")
		case f.Unit != "" && (f.Delta != 0 || f.DeltaName != ""):
			e.add(path+".unit", "%s has no delta: remove delta and delta_name", f.Unit)
		}
	}
	for i, name := range c.SafeFunctions {
		e.function(fmt.Sprintf("claims.safe_functions[%d]", i), name)
	}
	if c.Default != nil {
		e.claim("claims.default", *c.Default)
	}
	for i, r := range c.Rules {
		path := fmt.Sprintf("claims.rules[%d]", i)
		e.claim(path, Claim{r.Epsilon, r.Delta, r.Curve})
		e.match(path, "claims.default", match{r.User, r.Database, r.ApplicationName, r.Table, r.Pattern}, protected)
	}
}

// match holds the fields of a rule that select queries.
type match struct{ user, database, application, table, pattern string }

// unclaimed validates the policies for unclaimed reads.
func (e *engineSections) unclaimed(u UnclaimedReads, protected []string) {
	policies := []string{"audit", "count", "warn", "alert"}
	e.oneOf("privacy.unclaimed_reads.policy", u.Policy, policies...)
	for i, r := range u.Rules {
		path := fmt.Sprintf("privacy.unclaimed_reads.rules[%d]", i)
		e.oneOf(path+".policy", r.Policy, policies...)
		e.match(path, "privacy.unclaimed_reads.policy", match{r.User, r.Database, r.ApplicationName, r.Table, r.Pattern}, protected)
	}
}

// maxEpsilon is the largest claim that package rewrite accepts.
const maxEpsilon = 1000

func (e *engineSections) claim(path string, c Claim) {
	if c.Curve != "" {
		if _, err := curve.Parse(c.Curve); err != nil {
			e.add(path+".curve", "%v", err)
		}
		if c.Epsilon != 0 || c.Delta != 0 {
			e.add(path+".curve", "stands instead of epsilon and delta: remove these")
		}
	}
	if !(c.Epsilon >= 0 && c.Epsilon <= maxEpsilon) {
		e.add(path+".epsilon", "must be a number from 0 to %d", maxEpsilon)
	}
	if !(c.Delta >= 0 && c.Delta < 1) {
		e.add(path+".delta", "must be at least 0 and less than 1")
	}
}

// Minima of audit.budget, below which not even one batch of trials would fit.
const (
	leastTrials  = 600
	leastSeconds = 30
)

// minMemory is the minimum of audit.memory.
const minMemory ByteSize = 64 << 20

func (e *engineSections) audit(a *Audit) {
	if !(a.Confidence > 0.5 && a.Confidence < 1) {
		e.add("audit.confidence", "must be more than 0.5 and less than 1: with 0.95 the probability of a false alarm is at most 0.05, per audit or for all audits, as audit.error_rate says")
	}
	if a.ErrorRate != PerAudit && a.ErrorRate != Family && a.ErrorRate != FDR {
		e.add("audit.error_rate", "must be per_audit (1 - confidence bounds the probability of a false alarm in each audit), family (the probability of any false alarm in all audits together) or fdr (the mean share of false alarms among all alarms)")
	}
	if !slices.Contains(Policies(), a.Deterministic) {
		e.add("audit.deterministic", "must be violation, warning (the verdict is inconclusive) or ignore (inconclusive, without a warning)")
	}
	if !slices.Contains(Policies(), a.FloatingPoint) {
		e.add("audit.floating_point", "must be violation, warning (the verdict leaves the lowest bits of numbers out, and a warning says what they show) or ignore (they are not compared)")
	}
	e.atLeast("audit.max_trials", a.MaxTrials, 0)
	e.atLeast("audit.measure_trials", a.Measure, 0)
	e.atLeast("audit.workers", a.Workers, 0)
	e.atLeast("audit.max_audits", a.MaxAudits, 1)
	e.atLeastBytes("audit.memory", a.Memory, minMemory)
	if a.Repeat < 0 {
		e.add("audit.repeat", "must not be negative; 0s = never")
	}
	if !(a.WatchShare >= 0 && a.WatchShare <= 0.5) {
		e.add("audit.watch_share", "must be from 0 (decided audits have no more trials) to 0.5, for example 0.1: the share of the time in turns for them")
	}
	if !(a.ControlShare >= 0 && a.ControlShare <= 1) {
		e.add("audit.control_share", "must be from 0 (no control audits) to 1, for example 0.02: the share of the audits that are repeated with the twin of D0 in the place of D1")
	}
	e.oneOf("audit.sequence_composition", a.SequenceComposition, "sum", "max")
	if n := a.Budget.TrialsPerHour; n < 0 || n > 0 && n < leastTrials {
		e.add("audit.budget.trials_per_hour", "must be at least %d; 0 = no limit", leastTrials)
	}
	if s := a.Budget.DatabaseSeconds; !(s == 0 || s >= leastSeconds) || math.IsInf(s, 0) {
		e.add("audit.budget.database_seconds_per_hour", "must be a number of at least %d; 0 = no limit", leastSeconds)
	}
	e.atLeastBytes("audit.hoist_space", a.HoistSpace, 4<<20)
	if !(a.Share >= 0 && a.Share <= 1) {
		e.add("audit.share", "must be from 0 to 1: 0.1 is a tenth of the time of one connection, 1 is no limit, 0 is automatic")
	}
	e.atLeast("audit.sessions", a.Sessions, 0)
	if a.MaxLag < 0 {
		e.add("audit.max_lag", "must not be negative; 0s = not watched")
	}
}

// minRetention is the shortest ledger.retention: records are by hour.
const minRetention = Duration(time.Hour)

func (e *engineSections) ledger(c *Config) {
	if c.Ledger.DSN.Reveal() != LedgerMemory {
		e.connection("ledger.dsn", c.Ledger.DSN)
	}
	e.atLeastBytes("ledger.spool.max_bytes", c.Ledger.Spool.MaxBytes, 1<<20)
	if r := c.Ledger.Retention; r != 0 && r < minRetention {
		e.add("ledger.retention", "must be 0s (nothing is removed) or at least 1h, for example 2160h (90 days)")
	}
	if c.Ledger.Statements == "encrypted" {
		e.add("ledger.statements", "%s", formerValues["ledger.statements"])
	}
	e.oneOf("ledger.statements", c.Ledger.Statements, StatementsPlain, StatementsWithheld)
	switch {
	case c.Ledger.Schema == "":
		e.add("ledger.schema", "must name the schema of the ledger")
	case c.Ledger.Schema == c.ControlSchema() || slices.Contains(append(c.Shadow.Copies(), c.Shadow.TwinSchema(), c.Shadow.GuardSchema()), c.Ledger.Schema):
		e.add("ledger.schema", "%q is also a schema of the copies: the ledger needs its own, which the role of shadow.dsn cannot read", c.Ledger.Schema)
	}
}
