package config

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/internal/pg/ident"
)

// validate adds the errors that decoding does not find. A path that has an error already gets no second one.
func (d *decoder) validate(c *Config) {
	d.routes(c)
	d.proxy(&c.Proxy)
	d.allEngines(c)
	d.alerts(&c.Alerts)
	d.admin(c)
	d.oneOf("log.level", c.Log.Level, "debug", "info", "warn", "error")
	d.oneOf("log.reveal", c.Log.Reveal, RevealNone, RevealSQL, RevealValues)
}

// engine validates the sections of one engine.
func (d *decoder) engine(c *Config) {
	d.neighbours(c)
	d.shadow(&c.Shadow)
	d.privacy(&c.Privacy)
	d.unclaimed(c.Privacy.UnclaimedReads, c.Privacy.Protected)
	d.claims(&c.Claims, c.Privacy.Protected, c.Privacy.Catalog)
	d.audit(&c.Audit)
	d.ledger(c)
	d.budgets(c)
}

// add adds an error at the line of a path.
func (d *decoder) add(path, format string, args ...any) {
	path = d.located(path)
	for _, f := range d.errors {
		if f.Path == path {
			return
		}
	}
	line, p := 0, path
	for line == 0 { // a missing key is reported at its nearest parent
		line = d.lines[p]
		if p == "" {
			break
		}
		p = parent(p)
	}
	d.errors = append(d.errors, Error{File: d.file, Line: line, Path: path, Text: fmt.Sprintf(format, args...)})
}

func (d *decoder) proxy(p *Proxy) {
	d.atLeast("proxy.max_sessions", p.MaxSessions, 1)
	d.atLeastBytes("proxy.max_statement", p.MaxStatement, 1)
	if p.IdleTimeout < 0 {
		d.add("proxy.idle_timeout", "must not be negative; 0s = none")
	}
	if p.DrainTimeout < 0 {
		d.add("proxy.drain_timeout", "must not be negative")
	}
}

func (d *decoder) shadow(s *Shadow) {
	if s.DSN == "" {
		d.add("shadow.dsn", "missing: the database with the neighbouring copies, for example postgres://user:${PASSWORD}@host:5432/shadow")
	}
	d.connection("shadow.dsn", s.DSN)
	if s.D0 == "" {
		d.add("shadow.d0", "must name the schema that holds D0")
	}
	if len(s.D1) == 0 {
		d.add("shadow.d1", "must name at least one schema that holds a neighbour of D0")
	}
	for i, name := range s.D1 {
		path := fmt.Sprintf("shadow.d1[%d]", i)
		switch {
		case name == "":
			d.add(path, "must name a schema")
		case name == s.D0:
			d.add(path, "is the schema of D0: a neighbour must be another schema")
		case slices.Index(s.D1, name) < i:
			d.add(path, "%q is listed twice", name)
		}
	}
	d.engines(s)
	d.positive("shadow.statement_timeout", s.StatementTimeout)
	d.atLeast("shadow.max_rows", s.MaxRows, 1)
	d.atLeastBytes("shadow.max_result", s.MaxResult, 1<<10)
}

func (d *decoder) privacy(p *Privacy) {
	if len(p.Protected) == 0 {
		d.add("privacy.protected", "missing: the tables with personal data, as schema.table")
	}
	d.connection("privacy.catalog", p.Catalog)
	seen := map[string]string{}
	for i, name := range p.Protected {
		path := fmt.Sprintf("privacy.protected[%d]", i)
		d.table(path, name)
		bare := ident.ParseTable(name).Name
		switch other, ok := seen[bare]; {
		case ok && other == name:
			d.add(path, "%q is listed twice", name)
		case ok:
			d.add(path, "%q and %q have the same name: a neighbour schema can hold only one table of that name", other, name)
		}
		seen[bare] = name
	}
	for i, name := range p.Public {
		path := fmt.Sprintf("privacy.public[%d]", i)
		d.table(path, name)
		if slices.Contains(p.Protected, name) {
			d.add(path, "%q is also protected: a table is either protected or public", name)
		}
	}
}

func (d *decoder) table(path, name string) {
	t := ident.ParseTable(name)
	switch {
	case strings.Contains(name, `"`):
		d.add(path, "%s: write names as in the catalog, with their case and without quotation marks", name)
	case t.Schema == "" || t.Name == "" || strings.Contains(t.Name, "."):
		d.add(path, "%q is not schema.table", name)
	case len(t.Schema) > ident.MaxBytes || len(t.Name) > ident.MaxBytes:
		d.add(path, "%q: a name of PostgreSQL has at most %d bytes", name, ident.MaxBytes)
	case !utf8.ValidString(name) || strings.ContainsRune(name, 0):
		d.add(path, "%q is not text in UTF-8, or contains a NUL byte", name)
	case t.Schema == "information_schema" || strings.HasPrefix(t.Schema, "pg_") || strings.HasPrefix(t.Name, "pg_"):
		d.add(path, "%q is or looks like a system catalog", name)
	}
}

func (d *decoder) claims(c *Claims, protected []string, catalog Secret) {
	if c.Combine != "add" && c.Combine != "share" {
		d.add("claims.combine", "must be add (each DP function spends its own epsilon) or share (one epsilon for the query)")
	}
	for i, t := range c.Trust {
		d.oneOf(fmt.Sprintf("claims.trust[%d]", i), t, "comment", "setting")
	}
	if len(c.SecurityLabels) > 0 && catalog == "" {
		d.add("claims.security_labels", "needs privacy.catalog, the engine's database, which has the labels")
	}
	for i, f := range c.Functions {
		path := fmt.Sprintf("claims.functions[%d]", i)
		if f.Name == "" {
			d.add(path+".name", "missing: the name of the function")
		} else {
			d.function(path+".name", f.Name)
		}
		if f.Epsilon == 0 && f.EpsilonName == "" {
			d.add(path+".epsilon", "missing: the position of the epsilon argument, -1 for the last, or its epsilon_name")
		}
	}
	for i, name := range c.SafeFunctions {
		d.function(fmt.Sprintf("claims.safe_functions[%d]", i), name)
	}
	if c.Default != nil {
		d.claim("claims.default", *c.Default)
	}
	for i, r := range c.Rules {
		path := fmt.Sprintf("claims.rules[%d]", i)
		d.claim(path, Claim{r.Epsilon, r.Delta})
		d.match(path, "claims.default", match{r.User, r.Database, r.ApplicationName, r.Table, r.Pattern}, protected)
	}
}

// function validates the name of a function.
func (d *decoder) function(path, name string) {
	if _, _, ok := ident.ParseFunction(name); !ok {
		d.add(path, "%q: write it as name or schema.name", name)
	}
}

// match holds the fields of a rule that select queries.
type match struct{ user, database, application, table, pattern string }

// match validates the fields of a rule that select queries; otherwise is the key for those that no rule matches.
func (d *decoder) match(path, otherwise string, m match, protected []string) {
	if m == (match{}) {
		d.add(path, "matches every query: use %s for that, or set user, database, application_name, table or pattern", otherwise)
	}
	if _, err := regexp.Compile(m.pattern); err != nil {
		d.add(path+".pattern", "not a regular expression: %v", err)
	}
	if m.table != "" && !slices.Contains(protected, m.table) {
		d.add(path+".table", "%q is not listed in privacy.protected", m.table)
	}
}

// unclaimed validates the policies for unclaimed reads.
func (d *decoder) unclaimed(u UnclaimedReads, protected []string) {
	policies := []string{"audit", "count", "warn", "alert"}
	d.oneOf("privacy.unclaimed_reads.policy", u.Policy, policies...)
	for i, r := range u.Rules {
		path := fmt.Sprintf("privacy.unclaimed_reads.rules[%d]", i)
		d.oneOf(path+".policy", r.Policy, policies...)
		d.match(path, "privacy.unclaimed_reads.policy", match{r.User, r.Database, r.ApplicationName, r.Table, r.Pattern}, protected)
	}
}

// maxEpsilon is the largest claim that package rewrite accepts.
const maxEpsilon = 1000

func (d *decoder) claim(path string, c Claim) {
	if !(c.Epsilon >= 0 && c.Epsilon <= maxEpsilon) {
		d.add(path+".epsilon", "must be a number from 0 to %d", maxEpsilon)
	}
	if !(c.Delta >= 0 && c.Delta < 1) {
		d.add(path+".delta", "must be at least 0 and less than 1")
	}
}

// Minima of audit.budget, below which not even one batch of trials would fit.
const (
	leastTrials  = 600
	leastSeconds = 30
)

// minMemory is the minimum of audit.memory.
const minMemory ByteSize = 64 << 20

func (d *decoder) audit(a *Audit) {
	if !(a.Confidence > 0.5 && a.Confidence < 1) {
		d.add("audit.confidence", "must be more than 0.5 and less than 1: with 0.95 the probability of a false alarm is at most 0.05, per audit or for all audits, as audit.error_rate says")
	}
	if a.ErrorRate != PerAudit && a.ErrorRate != Family && a.ErrorRate != FDR {
		d.add("audit.error_rate", "must be per_audit (1 - confidence bounds the probability of a false alarm in each audit), family (the probability of any false alarm in all audits together) or fdr (the mean share of false alarms among all alarms)")
	}
	if !slices.Contains(DeterministicPolicies(), a.Deterministic) {
		d.add("audit.deterministic", "must be violation, warning (the verdict is inconclusive) or ignore (inconclusive, without a warning)")
	}
	d.atLeast("audit.max_trials", a.MaxTrials, 1)
	d.atLeast("audit.measure_trials", a.Measure, 0)
	d.atLeast("audit.workers", a.Workers, 0)
	d.atLeast("audit.max_audits", a.MaxAudits, 1)
	d.atLeastBytes("audit.memory", a.Memory, minMemory)
	if a.Repeat < 0 {
		d.add("audit.repeat", "must not be negative; 0s = never")
	}
	if !(a.WatchShare >= 0 && a.WatchShare <= 0.5) {
		d.add("audit.watch_share", "must be from 0 (decided audits have no more trials) to 0.5, for example 0.1: the share of the time in turns for them")
	}
	d.oneOf("audit.sequence_composition", a.SequenceComposition, "sum", "max")
	if n := a.Budget.TrialsPerHour; n < 0 || n > 0 && n < leastTrials {
		d.add("audit.budget.trials_per_hour", "must be at least %d; 0 = no limit", leastTrials)
	}
	if s := a.Budget.DatabaseSeconds; !(s == 0 || s >= leastSeconds) || math.IsInf(s, 0) {
		d.add("audit.budget.database_seconds_per_hour", "must be a number of at least %d; 0 = no limit", leastSeconds)
	}
	d.atLeastBytes("audit.hoist_space", a.HoistSpace, 4<<20)
	if !(a.Share >= 0 && a.Share <= 1) {
		d.add("audit.share", "must be from 0 to 1: 0.1 is a tenth of the time of one connection, 1 is no limit, 0 is automatic")
	}
	d.atLeast("audit.sessions", a.Sessions, 0)
	if a.MaxLag < 0 {
		d.add("audit.max_lag", "must not be negative; 0s = not watched")
	}
}

// minRetention is the shortest ledger.retention: records are by hour.
const minRetention = Duration(time.Hour)

func (d *decoder) ledger(c *Config) {
	if c.Ledger.DSN.Reveal() != LedgerMemory {
		d.connection("ledger.dsn", c.Ledger.DSN)
	}
	d.atLeastBytes("ledger.spool.max_bytes", c.Ledger.Spool.MaxBytes, 1<<20)
	if r := c.Ledger.Retention; r != 0 && r < minRetention {
		d.add("ledger.retention", "must be 0s (nothing is removed) or at least 1h, for example 2160h (90 days)")
	}
	if c.Ledger.Statements == "encrypted" {
		d.add("ledger.statements", "%s", formerValues["ledger.statements"])
	}
	d.oneOf("ledger.statements", c.Ledger.Statements, StatementsPlain, StatementsWithheld)
	switch {
	case c.Ledger.Schema == "":
		d.add("ledger.schema", "must name the schema of the ledger")
	case c.Ledger.Schema == c.ControlSchema() || slices.Contains(c.Shadow.Copies(), c.Ledger.Schema):
		d.add("ledger.schema", "%q is also a schema of the copies: the ledger needs its own, which the role of shadow.dsn cannot read", c.Ledger.Schema)
	}
}

func (d *decoder) atLeast(path string, v, low int) {
	if v < low {
		d.add(path, "must be at least %d", low)
	}
}

func (d *decoder) atLeastBytes(path string, v, low ByteSize) {
	if v < low {
		d.add(path, "is %s: must be at least %s", v, low)
	}
}

func (d *decoder) positive(path string, v Duration) {
	if v <= 0 {
		d.add(path, "must be more than 0")
	}
}

// connection validates a connection string; "" is none. pgx also reads the certificate, key and service files that it
// names. The error contains no part of the string, which may hold a password.
func (d *decoder) connection(path string, dsn Secret) {
	if _, err := pgx.ParseConfig(dsn.Reveal()); err != nil {
		d.add(path, "not a PostgreSQL connection string (postgres://user@host:port/database or key=value pairs), or it has an invalid sslmode, an unknown service, or a certificate or key file that cannot be read")
	}
}
