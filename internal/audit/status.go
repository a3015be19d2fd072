package audit

import (
	"maps"
	"slices"
	"time"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/ledger"
	"github.com/dpwatch/dpwatch/replay"
	"github.com/dpwatch/dpwatch/replay/throttle"
)

// Status is the state of the auditor, for pages, commands and scripts. It withholds values of rows unless
// Options.ShowValues is set.
type Status struct {
	At       time.Time         `json:"at"`
	Captured uint64            `json:"captured"`           // queries taken
	Skipped  map[string]uint64 `json:"skipped"`            // not audited, by reason
	Evicted  map[string]uint64 `json:"evicted"`            // audits dropped, by reason
	Coverage Coverage          `json:"coverage"`           // share of the auditable queries that are audited
	Memory   Memory            `json:"memory"`             // of the audits
	Faults   uint64            `json:"replay_faults"`      // batches that could not be replayed
	Shadow   string            `json:"shadow,omitempty"`   // fault of the shadow database; empty = none known
	Catalog  string            `json:"catalog,omitempty"`  // why a catalog could not be read last time; rewriting then depends on more assumptions
	Observe  bool              `json:"observe,omitempty"`  // nothing is replayed
	Panics   uint64            `json:"recovered_panics"`   // in audit goroutines
	Resting  int               `json:"resting,omitempty"`  // audits between two turns whose sessions stay open, with the tables of hoisting
	Audits   []Entry           `json:"audits"`             // in the order in which they were first seen
	Records  []Record          `json:"records,omitempty"`  // violations whose audits were evicted
	Warnings []string          `json:"warnings,omitempty"` // about the set-up
	Pace     *throttle.State   `json:"pace,omitempty"`     // whether replays are held, and why
	Budget   *BudgetState      `json:"budget,omitempty"`   // nil = no limit
	// PrivacyBudgets are those of Options.Budgets, at the last comparison.
	PrivacyBudgets []PrivacyBudgetState `json:"privacy_budgets,omitempty"`
	Ledger         *LedgerState         `json:"ledger,omitempty"`  // nil = audits are in memory only
	Workers        []WorkerState        `json:"workers,omitempty"` // on other machines, the earliest first
	Turns          *Turns               `json:"turns,omitempty"`   // of those workers; nil without a ledger
}

// Turns counts the turns that workers on other machines had.
type Turns struct {
	Out       int    `json:"out"`       // workers have them now
	Delivered uint64 `json:"delivered"` // since the start
	Dropped   uint64 `json:"dropped"`   // the worker ended, was cut off, or refused the turn
}

// LedgerState describes what the ledger lacks.
type LedgerState struct {
	Restored bool    `json:"restored"`          // the audits of earlier processes go on; until then audits wait
	Trouble  string  `json:"trouble,omitempty"` // why it could not be read or written the last time
	Unsaved  int     `json:"unsaved_audits"`    // audits whose latest state is not written yet
	Waiting  int     `json:"waiting"`           // observations that are not written yet
	Lost     uint64  `json:"lost"`              // executions and skipped statements that were not recorded
	Spooled  int64   `json:"spooled_bytes"`     // of observations and captured queries that wait on disk
	Removed  Removed `json:"removed"`

	Holder *ledger.Process `json:"holder,omitempty"` // the process that audits the engine, while this one only records for it
	// OtherConfiguration: Holder, or one of the Recorders, is known to have another configuration than this process.
	OtherConfiguration bool             `json:"other_configuration,omitempty"`
	Recorders          []ledger.Process `json:"recorders,omitempty"` // those that capture queries of the engine and record them for this process
}

// Coverage describes which part of the auditable DP queries is audited.
type Coverage struct {
	Queries        float64 `json:"queries"`             // distinct ones so far, estimated above a thousand
	AuditedQueries float64 `json:"audited_query_share"` // share of Queries with an audit, or with an audit that was decided
	Owners         int     `json:"owners"`              // users and databases that have audits
}

// Memory is the memory of the audits.
type Memory struct {
	Audits int64 `json:"audit_bytes"`  // estimated
	Budget int64 `json:"budget_bytes"` // 0 = no limit
}

// Status returns a copy of the present state.
func (a *Auditor) Status() Status {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := Status{
		At: a.opt.Now(), Captured: a.captured, Skipped: maps.Clone(a.skipped), Evicted: maps.Clone(a.evictions),
		Faults: a.faults, Panics: a.panics, Shadow: a.shadow, Catalog: a.catalog, Warnings: a.warnings,
		Resting: a.idle.count(), Observe: a.opt.Observe,
		Memory:  Memory{Audits: a.roster.Bytes(), Budget: a.opt.Memory},
		Records: a.records.list(),
		Audits:  make([]Entry, len(a.order)),
	}
	s.Ledger, s.Budget = a.ledgerState(), a.budgetState()
	s.PrivacyBudgets = slices.Clone(a.budgets)
	s.Workers, s.Turns = a.remoteState()
	s.Coverage.Queries, s.Coverage.AuditedQueries = a.coverage.queries()
	s.Coverage.Owners = a.roster.Owners()
	if a.opt.Gate != nil {
		state := a.opt.Gate.State()
		s.Pace = &state
	}
	waiting := a.waiting(s.At)
	for i, j := range a.order {
		s.Audits[i] = j.entry(&a.opt)
		s.Audits[i].WaitingFor = waiting[j.Key]
	}
	a.acceptances(&s)
	slices.SortStableFunc(s.Audits, func(x, y Entry) int { return x.FirstSeen.Compare(y.FirstSeen) })
	return s
}

// Entry is one audit: one statement with its constants, parameters, settings and claim.
type Entry struct {
	ID        string    `json:"id"`              // first 12 hex digits of Key
	Key       string    `json:"key"`             // identity: see rewrite.Plan; with several routes, the route too
	Route     string    `json:"route,omitempty"` // the engine at which it was captured, if there are several
	Group     string    `json:"fingerprint"`     // shared by the same statement with other constants
	Summary   string    `json:"summary"`         // without literals
	User      string    `json:"user"`
	Database  string    `json:"database"`
	App       string    `json:"application_name,omitempty"`
	Neighbour string    `json:"neighbour"` // D1 schema of Report: the worst
	Seen      uint64    `json:"seen"`      // times that clients ran it
	FirstSeen time.Time `json:"first_seen"`
	LastSeen  time.Time `json:"last_seen"`
	State     State     `json:"state"`
	// Verdict is that of the report for a decided audit and for a violation, otherwise the state.
	Verdict  string `json:"verdict"`
	Worker   string `json:"worker,omitempty"`   // id of the worker on another machine that has its turn
	Restarts int    `json:"restarts,omitempty"` // how often its evidence was dropped because the copies were created again
	// Repeats is how often the audit was repeated from the start because audit.repeat had passed, and Previous the verdict before.
	Repeats  int              `json:"repeats,omitempty"`
	Previous analysis.Verdict `json:"previous_verdict,omitempty"`
	EntryLife
	Accepted   *Accepted   `json:"accepted,omitempty"`    // of its violation; nil = it is not accepted
	WaitingFor *WaitingFor `json:"waiting_for,omitempty"` // nil = its trials run, or it is decided
	// Changes is how often the change detector made the audit begin again, and Changed when it did last.
	Changes   int         `json:"changes,omitempty"`
	Changed   time.Time   `json:"changed,omitzero"`
	Watch     *WatchState `json:"watch,omitempty"`   // nil = not watched
	Trouble   string      `json:"trouble,omitempty"` // why it waits, or why it cannot be judged
	ClaimRule string      `json:"claim_rule,omitempty"`
	Assumed   []string    `json:"assumed,omitempty"` // assumptions of the rewrite
	// Report is the present state of the evidence. Its verdict is empty until there is one.
	Report *analysis.Report `json:"report,omitempty"`
	// Partitions is the number of partitions; Report has those with the largest estimates.
	Partitions int      `json:"partitions,omitempty"`
	SQL        *SQLPair `json:"sql,omitempty"` // only if log.sql is on: it holds literals
	// Hoisting describes whether trials are hoisted; nil if audit.hoist is off.
	Hoisting *replay.HoistReport `json:"hoisting,omitempty"`
	// Confirming: the first trials show a violation, and Report.Confirmation is the evidence of new trials so far, each in
	// a session of its own. The violation is reported if they show it as well.
	Confirming bool `json:"confirming,omitempty"`
	// Neighbours has an entry for every neighbour if there are several.
	Neighbours []Neighbour `json:"neighbours,omitempty"`
}

// Neighbour is the result for one neighbour of D0.
type Neighbour struct {
	Schema   string           `json:"schema"`
	Verdict  analysis.Verdict `json:"verdict"` // empty until there is one
	Lower    analysis.Float   `json:"epsilon_lower"`
	Estimate analysis.Float   `json:"epsilon_estimate"`
}

// SQLPair is a statement as replayed on each world.
type SQLPair struct {
	D0 string `json:"d0"`
	D1 string `json:"d1"`
}
