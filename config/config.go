package config

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/goccy/go-yaml"
)

// Config is the whole file. Start from Default; the zero value is not valid.
type Config struct {
	Proxy      Proxy           `yaml:"proxy"`
	Admin      []AdminListener `yaml:"admin"`
	Shadow     Shadow          `yaml:"shadow"`
	Privacy    Privacy         `yaml:"privacy"`
	Neighbours Neighbours      `yaml:"neighbours"`
	Claims     Claims          `yaml:"claims"`
	Audit      Audit           `yaml:"audit"`
	Engine     Engine          `yaml:"engine"`
	Budgets    []PrivacyBudget `yaml:"budgets"`
	Alerts     Alerts          `yaml:"alerts"`
	Ledger     Ledger          `yaml:"ledger"`
	// Engines lists the engines, if there are several or if one has several routes: see AllEngines.
	Engines []EngineSections `yaml:"engines"`
	Log     Log              `yaml:"log"`

	Tuning Tuning `yaml:"-"`
}

// Proxy configures the relay between the clients and the engines. Of several engines, each has its own routes.
type Proxy struct {
	Listen        []Address   `yaml:"listen"`
	Upstream      Address     `yaml:"upstream"`
	TLS           TLS         `yaml:"tls"`
	UpstreamTLS   UpstreamTLS `yaml:"upstream_tls"`
	ProxyProtocol []Network   `yaml:"proxy_protocol"`
	Routes        []Route     `yaml:"-"` // of one of Config.Engines; see AllRoutes

	Capture      bool     `yaml:"capture"`
	MaxSessions  int      `yaml:"max_sessions"`
	DrainTimeout Duration `yaml:"drain_timeout"`
	IdleTimeout  Duration `yaml:"idle_timeout"`
	MaxStatement ByteSize `yaml:"max_statement"`
}

// Shadow configures the database with the neighbouring copies, and the limits of replays.
type Shadow struct {
	DSN              Secret       `yaml:"dsn"`
	Engine           ReplayEngine `yaml:"engine"`
	D0               string       `yaml:"d0"`
	D1               []string     `yaml:"d1"`
	Twin             string       `yaml:"twin"`  // a second copy of D0; none or "" = there is none
	Guard            string       `yaml:"guard"` // a third one; none = there is none; "" = see GuardSchema
	SearchPath       []string     `yaml:"search_path"`
	StatementTimeout Duration     `yaml:"statement_timeout"`
	MaxRows          int          `yaml:"max_rows"`
	MaxResult        ByteSize     `yaml:"max_result"`
}

// ReplayEngine configures the engine on which trials run.
type ReplayEngine struct {
	// DSN has the connection strings of an engine beside the database: one for all copies, or one for each, D0 first.
	// Empty = the engine is in the database.
	DSN      []Secret `yaml:"dsn"`
	Protocol string   `yaml:"protocol"` // captured | extended | simple: how trials are sent
	// Version is a query that the engine answers with its version; "" = it is the definitions of its functions.
	Version string `yaml:"version"`
}

// Copies returns the schemas of the copies, D0 first.
func (s Shadow) Copies() []string { return append([]string{s.D0}, s.D1...) }

// NoTwin is the value of shadow.twin and shadow.guard with which copies that dpwatch makes have none.
const NoTwin = "none"

// TwinSchema returns the schema of the second copy of D0; "" = there is none.
func (s Shadow) TwinSchema() string {
	if s.Twin == NoTwin {
		return ""
	}
	return s.Twin
}

// GuardSchema returns the schema of the third copy of D0, which guards control audits; "" = there is none, as without a
// twin, or if each copy has its own engine and the guard has none. Copies may lack it.
func (s Shadow) GuardSchema() string {
	if s.Guard == NoTwin || s.TwinSchema() == "" || s.OwnEngines() && len(s.Engine.DSN) < len(s.Copies())+2 {
		return ""
	}
	return cmp.Or(s.Guard, s.D0+"_guard")
}

// Beside reports whether the engine is beside the database.
func (s Shadow) Beside() bool { return len(s.Engine.DSN) > 0 }

// OwnEngines reports whether each copy has its own engine.
func (s Shadow) OwnEngines() bool { return len(s.Engine.DSN) > 1 }

// Engines returns the connection strings of the engine beside the database: none, one for all copies, or one for each
// of the given copies that has one, in their order. The twin's and the guard's are the last ones.
func (s Shadow) Engines(copies []string) []string {
	var engines []string
	if !s.OwnEngines() {
		for _, dsn := range s.Engine.DSN {
			engines = append(engines, dsn.Reveal())
		}
		return engines
	}
	all := append(s.Copies(), s.TwinSchema(), s.GuardSchema())
	for _, schema := range copies {
		if i := slices.Index(all, schema); i >= 0 && i < len(s.Engine.DSN) {
			engines = append(engines, s.Engine.DSN[i].Reveal())
		}
	}
	return engines
}

// Privacy lists the tables with personal data.
type Privacy struct {
	Database   string   `yaml:"database"`  // database of the protected tables; "" = any database of the clients
	Protected  []string `yaml:"protected"` // schema.table
	Public     []string `yaml:"public"`
	SearchPath []string `yaml:"search_path"`
	// Catalog is the connection string of the clients' database, whose catalog is read; "" = names are resolved with
	// these lists only.
	Catalog Secret `yaml:"catalog"`

	UnclaimedReads UnclaimedReads `yaml:"unclaimed_reads"`

	Unit  *Unit  `yaml:"unit"` // nil = none; neighbours need one
	Paths []Path `yaml:"paths"`
}

// UnclaimedReads says what happens with queries that read protected tables, call no DP function and have no claim:
// audit, count, warn or alert.
type UnclaimedReads struct {
	Policy string          `yaml:"policy"` // of those that no rule matches
	Rules  []UnclaimedRule `yaml:"rules"`
}

// UnclaimedRule gives the policy for the unclaimed reads that match every field that is set.
type UnclaimedRule struct {
	User            string `yaml:"user"`
	Database        string `yaml:"database"`
	ApplicationName string `yaml:"application_name"`
	Table           string `yaml:"table"`
	Pattern         string `yaml:"pattern"`
	Policy          string `yaml:"policy"`
}

// Claims configures how the claimed privacy loss of a query is determined.
type Claims struct {
	Answer    string     `yaml:"answer"` // prefix of the names with which the engine states claims in its answers; "" = none
	Ask       string     `yaml:"ask"`    // a query in which $1 is the statement: the engine states its claim
	Functions []Function `yaml:"functions"`
	Combine   string     `yaml:"combine"` // add | share
	Settings  Settings   `yaml:"settings"`
	Trust     []string   `yaml:"trust"` // comment, setting
	// SecurityLabels are the providers of the SECURITY LABELs that are read for claims.
	SecurityLabels []string    `yaml:"security_labels"`
	Rules          []ClaimRule `yaml:"rules"`
	Default        *Claim      `yaml:"default"`
	SafeFunctions  []string    `yaml:"safe_functions"`
}

// Function is a signature rule: the positions of the epsilon and delta arguments of a DP function. Positions count from
// 1, negative ones from the end; 0 = not an argument.
type Function struct {
	Name    string `yaml:"name"`
	Epsilon int    `yaml:"epsilon"`
	Delta   int    `yaml:"delta"`
	// The parameters' names, for calls with named arguments; "" = such a call is refused if the position is ambiguous.
	EpsilonName string `yaml:"epsilon_name"`
	DeltaName   string `yaml:"delta_name"`
	// Unit is that of the epsilon argument if it is the parameter of a curve: mu or rho; "" = epsilon.
	Unit string `yaml:"unit"`
}

// Settings names the session settings that carry a claim; "" = none.
type Settings struct {
	Epsilon string `yaml:"epsilon"`
	Delta   string `yaml:"delta"`
}

// Claim is a claimed privacy loss: (epsilon, delta), or a curve instead.
type Claim struct {
	Epsilon float64 `yaml:"epsilon"`
	Delta   float64 `yaml:"delta"`
	Curve   string  `yaml:"curve"`
}

// ClaimRule assigns a claim to the queries that match every field that is set.
type ClaimRule struct {
	Name            string  `yaml:"name"`
	User            string  `yaml:"user"`
	Database        string  `yaml:"database"`
	ApplicationName string  `yaml:"application_name"`
	Table           string  `yaml:"table"`
	Pattern         string  `yaml:"pattern"`
	Epsilon         float64 `yaml:"epsilon"`
	Delta           float64 `yaml:"delta"`
	Curve           string  `yaml:"curve"` // instead of both; see package curve
}

// Values of audit.error_rate: the event whose probability 1 - audit.confidence bounds.
const (
	PerAudit = "per_audit" // a false alarm in one audit
	Family   = "family"    // any false alarm in all audits, as long as the ledger is kept
	FDR      = "fdr"       // not the event of a false alarm, but the mean share of false alarms among all
)

// Policies returns the values of audit.deterministic and audit.floating_point.
func Policies() []string { return []string{"violation", "warning", "ignore"} }

// Confirm configures how violations are confirmed with fresh trials.
type Confirm struct {
	VaryText bool `yaml:"vary_text"` // precede each trial's statement with a comment that holds a random number
}

// Budget bounds what replays use in any hour; 0 = no limit.
type Budget struct {
	TrialsPerHour   int     `yaml:"trials_per_hour"`           // executions of a query on one of the copies
	DatabaseSeconds float64 `yaml:"database_seconds_per_hour"` // in which sessions run trials, added over all sessions
}

// Audit configures the audits and their limits.
type Audit struct {
	Confidence float64 `yaml:"confidence"`
	ErrorRate  string  `yaml:"error_rate"` // per_audit | family | fdr: what 1 - Confidence bounds
	// Deterministic is the verdict on answers that never vary and differ between D0 and D1: violation, warning or
	// ignore.
	Deterministic string `yaml:"deterministic"`
	// FloatingPoint says what lowest bits of numbers that show the dataset are: violation, warning or ignore.
	FloatingPoint string  `yaml:"floating_point"`
	Confirm       Confirm `yaml:"confirm"`

	Observe   bool     `yaml:"observe"`        // true = queries are captured and planned, and nothing is replayed
	MaxTrials int      `yaml:"max_trials"`     // 0 = by the claim
	Measure   int      `yaml:"measure_trials"` // pairs after a violation, with which its bound grows; 0 = none
	Workers   int      `yaml:"workers"`
	MaxAudits int      `yaml:"max_audits"`
	Memory    ByteSize `yaml:"memory"` // approximate memory of the auditor process; half of it is for audits
	Repeat    Duration `yaml:"repeat"` // 0 = never
	// WatchShare is the share of the time in turns in which decided audits without a violation are watched; 0 = they
	// are not.
	WatchShare float64 `yaml:"watch_share"`
	// ControlShare is the share of the audits to which a control audit belongs; 0 = there are none.
	ControlShare float64 `yaml:"control_share"`
	Budget       Budget  `yaml:"budget"`
	Sequences    bool    `yaml:"sequences"` // audit queries together that a session runs together again and again
	// SequenceComposition is how the claims of a sequence's queries give its claim: sum or max.
	SequenceComposition string   `yaml:"sequence_composition"`
	Hoist               bool     `yaml:"hoist"`       // trials can reuse results that are the same in all of them
	HoistSpace          ByteSize `yaml:"hoist_space"` // on the shadow server's disk, for the tables of all hoisted audits together

	// Throttling of replays; 0 or empty = no limit.
	Sessions int      `yaml:"sessions"` // concurrent sessions; 0 = two per worker
	Share    float64  `yaml:"share"`    // of the time in which a single connection is busy; 0 = automatic, 1 = no limit
	Windows  []Window `yaml:"windows"`
	MaxLag   Duration `yaml:"max_lag"`
}

// Engine identifies the audited engine in the ledger.
type Engine struct {
	Name string `yaml:"name"` // "" = privacy.database and the address of the upstream
}

// EngineName returns the name of the engine in the ledger, for a configuration of one engine (AllEngines).
func (c Config) EngineName() string {
	if c.Engine.Name != "" {
		return c.Engine.Name
	}
	return c.Privacy.Database + "@" + c.Proxy.AllRoutes()[0].Upstream.String()
}

// LedgerMemory is the value of ledger.dsn for a ledger in the memory of the auditor process.
const LedgerMemory = "memory"

// Ledger configures where audits, their evidence and their history are stored.
type Ledger struct {
	// DSN is a connection string, or LedgerMemory. "" = neighbours.target, and LedgerMemory if that is not set.
	DSN     Secret `yaml:"dsn"`
	Schema  string `yaml:"schema"`
	Migrate bool   `yaml:"migrate"` // create or upgrade the schema at the start
	// Retention is the age beyond which records are removed; 0 = they are kept.
	Retention  Duration `yaml:"retention"`
	Statements string   `yaml:"statements"` // whether captured statements and parameters are stored: StatementsPlain or StatementsWithheld
	Spool      Spool    `yaml:"spool"`
}

// Spool configures the directory where observations and captured queries wait while the ledger is away.
type Spool struct {
	Dir      string   `yaml:"dir"` // "" = one in the state directory of the unit or the user; without one they wait in memory
	MaxBytes ByteSize `yaml:"max_bytes"`
}

// Values of Ledger.Statements.
const (
	StatementsPlain    = "plain"
	StatementsWithheld = "withheld"
)

// LedgerDSN returns the connection string of the ledger, "" for one in memory.
func (c Config) LedgerDSN() string {
	switch dsn := c.Ledger.DSN.Reveal(); dsn {
	case LedgerMemory:
		return ""
	case "":
		return c.Neighbours.Target.Reveal()
	default:
		return dsn
	}
}

// Log configures the log.
type Log struct {
	Level string `yaml:"level"` // debug | info | warn | error
	// Reveal is what else logs, alerts and the status include: RevealNone, RevealSQL or RevealValues.
	Reveal string `yaml:"reveal"`
}

// Values of Log.Reveal.
const (
	RevealNone   = "none"
	RevealSQL    = "sql"    // statements, with their literals
	RevealValues = "values" // also values from rows: group keys, texts, thresholds, the server's messages
)

// ShowsSQL reports whether statements with their literals are shown.
func (l Log) ShowsSQL() bool { return l.Reveal == RevealSQL || l.Reveal == RevealValues }

// ShowsValues reports whether values from rows are shown.
func (l Log) ShowsValues() bool { return l.Reveal == RevealValues }

// Default returns the default configuration, over which a file is parsed.
func Default() Config {
	return Config{
		Proxy: Proxy{
			TLS:          TLS{Mode: "disable", SameCertificate: "check"},
			UpstreamTLS:  UpstreamTLS{Mode: "disable"},
			Capture:      true,
			MaxSessions:  1000,
			DrainTimeout: Duration(30 * time.Second),
			MaxStatement: 256 << 10,
		},
		Shadow: Shadow{
			D0: "d0", D1: []string{"d1"}, Engine: ReplayEngine{DSN: []Secret{}, Protocol: "captured"},
			SearchPath:       []string{"public"},
			StatementTimeout: Duration(10 * time.Second),
			MaxRows:          10_000,
			MaxResult:        8 << 20,
		},
		Privacy:    Privacy{SearchPath: []string{"public"}, UnclaimedReads: UnclaimedReads{Policy: "audit"}},
		Neighbours: defaultNeighbours(),
		Claims: Claims{
			Combine:  "add",
			Settings: Settings{Epsilon: "dp.epsilon", Delta: "dp.delta"},
		},
		Audit: Audit{
			Confidence: 0.95, ErrorRate: Family, Deterministic: "violation", FloatingPoint: "violation", Measure: 20_000, Workers: 2, MaxAudits: 1000, Memory: 512 << 20,
			Repeat: Duration(7 * 24 * time.Hour), WatchShare: 0.1, ControlShare: 0.02, Sequences: true, SequenceComposition: "sum", Hoist: true, HoistSpace: 1 << 30,
		},
		Ledger: Ledger{Schema: "dpwatch_ledger", Migrate: true, Retention: Duration(90 * 24 * time.Hour), Statements: StatementsPlain, Spool: Spool{MaxBytes: 64 << 20}},
		Alerts: defaultAlerts(),
		Log:    Log{Level: "info", Reveal: RevealNone},
		Tuning: defaultTuning(),
	}
}

// Print returns the configuration as YAML with all defaults filled in and every secret as "***".
func Print(c Config) ([]byte, error) {
	out, err := yaml.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("print configuration: %w", err)
	}
	return out, nil
}
