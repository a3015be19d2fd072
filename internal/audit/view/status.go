package view

import (
	"slices"
	"time"

	"github.com/dpwatch/dpwatch/internal/ledger"
	"github.com/dpwatch/dpwatch/internal/read"
	"github.com/dpwatch/dpwatch/replay/throttle"
)

// Status is the state of the auditor, for pages, commands and scripts. It withholds values of rows unless
// audit.Options.ShowValues is set.
type Status struct {
	At          time.Time         `json:"at"`
	Captured    uint64            `json:"captured"`           // queries taken
	Skipped     map[string]uint64 `json:"skipped"`            // not audited, by reason
	Evicted     map[string]uint64 `json:"evicted"`            // audits dropped, by reason
	Coverage    Coverage          `json:"coverage"`           // share of the auditable queries that are audited
	FalseAlarms *FalseAlarms      `json:"false_alarms"`       // on identical data; null = nothing is replayed
	Memory      Memory            `json:"memory"`             // of the audits
	Faults      uint64            `json:"replay_faults"`      // batches that could not be replayed
	Shadow      string            `json:"shadow,omitempty"`   // fault of the shadow database; empty = none known
	Catalog     string            `json:"catalog,omitempty"`  // why a catalog could not be read last time; rewriting then depends on more assumptions
	Production  *Production       `json:"production"`         // whether the shadow database is like production; null = nothing is replayed
	Observe     bool              `json:"observe,omitempty"`  // nothing is replayed
	Panics      uint64            `json:"recovered_panics"`   // in audit goroutines
	Resting     int               `json:"resting,omitempty"`  // audits between two turns whose sessions stay open, with the tables of hoisting
	Audits      []Entry           `json:"audits"`             // in the order in which they were first seen
	Records     []Record          `json:"records,omitempty"`  // violations whose audits were evicted
	Warnings    []string          `json:"warnings,omitempty"` // about the set-up
	// Accepted are the acceptances in force, by the id of the audit, of whose violations some may be in the ledger
	// alone.
	Accepted map[string]Accepted `json:"accepted,omitempty"`
	Alerts   *AlertsState        `json:"alerts,omitempty"` // nil = not known
	Pace     *throttle.State     `json:"pace,omitempty"`   // whether replays are held, and why
	Budget   *BudgetState        `json:"budget,omitempty"` // nil = no limit
	// PrivacyBudgets are those of audit.Options.Budgets, at the last comparison.
	PrivacyBudgets []PrivacyBudgetState `json:"privacy_budgets,omitempty"`
	Ledger         *LedgerState         `json:"ledger,omitempty"`  // nil = audits are in memory only
	Workers        []WorkerState        `json:"workers,omitempty"` // on other machines, the earliest first
	Turns          *Turns               `json:"turns,omitempty"`   // of those workers; nil without a ledger
}

// Production is the comparison of the shadow database with production.
type Production struct {
	Compared    bool     `json:"compared"`
	Why         string   `json:"why,omitempty"` // it is not compared
	Differences []string `json:"differences,omitempty"`
}

// AlertsState describes the alerts of the engine and their messages.
type AlertsState struct {
	Firing   int    `json:"firing"`
	Unstored int    `json:"unstored,omitempty"` // states of alerts that the ledger does not have yet
	Trouble  string `json:"trouble,omitempty"`  // why the ledger could not be read or written for alerts the last time
	// Undelivered are the receivers with messages that have not arrived.
	Undelivered []ledger.Undelivered `json:"undelivered,omitempty"`
}

// LateAfter is how long a message may be pending before it counts as late.
const LateAfter = 15 * time.Minute

// Late reports whether somebody should look at the delivery of alerts: the ledger has a fault, or messages failed or
// are pending for too long.
func (s *AlertsState) Late() bool {
	return s.Trouble != "" || slices.ContainsFunc(s.Undelivered, func(u ledger.Undelivered) bool { return u.Failed > 0 || u.Oldest > LateAfter })
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
	AuditedQueries float64 `json:"audited_query_share"` // share of Queries whose audit has or had trials
	Owners         int     `json:"owners"`              // users and databases that have audits
}

// FalseAlarms describes the rate of false alarms, and the control audits that measure it.
type FalseAlarms struct {
	read.FalseAlarms
	Running   int     `json:"running"`       // control audits that are not decided
	ErrorRate float64 `json:"error_rate"`    // the largest rate that the tests allow: 1 - audit.confidence
	Guard     bool    `json:"guard"`         // a second twin of D0 controls their suspicions, as the twin does those of other audits
	Off       string  `json:"off,omitempty"` // why there are no control audits now; empty = there are
}

// Excessive reports whether more of the control audits alarmed than an honest audit may.
func (f *FalseAlarms) Excessive() bool { return float64(f.Alarms) > f.ErrorRate*float64(f.Audits) }

// Memory is the memory of the audits.
type Memory struct {
	Audits int64 `json:"audit_bytes"`  // estimated
	Budget int64 `json:"budget_bytes"` // 0 = no limit
}

// BudgetState describes the budget of replays.
type BudgetState struct {
	TrialsPerHour  int     `json:"trials_per_hour,omitempty"`           // 0 = no limit
	SecondsPerHour float64 `json:"database_seconds_per_hour,omitempty"` // 0 = no limit
	Trials         int64   `json:"trials"`                              // used since the process began
	Seconds        float64 `json:"database_seconds"`
	// Since is when audits began to wait for the budget, zero if none does, and Waiting how many wait now.
	Since   time.Time `json:"waiting_since,omitzero"`
	Waiting int       `json:"waiting"`
}

// Removed is what was removed from the ledger because it was older than Options.Retention, since the start.
type Removed struct {
	Queries int64 `json:"queries"` // with their audits, evidence and history
	Rows    int64 `json:"rows"`    // executions by user and hour, skipped statements, the use of the budget, events, progress that was set aside
}

// WorkerState describes a worker on another machine.
type WorkerState struct {
	ID      string        `json:"id"`
	Host    string        `json:"host"`
	Version string        `json:"version"`
	Slots   int           `json:"slots"`             // turns at a time
	Turns   int           `json:"turns"`             // that it has
	Since   time.Time     `json:"since"`             // it started
	Silent  time.Duration `json:"silent_ns"`         // since its last heartbeat
	Refused string        `json:"refused,omitempty"` // why it gets no turns for a while
}

// PrivacyBudgetState is a PrivacyBudget as it was compared the last time.
type PrivacyBudgetState struct {
	Name     string  `json:"name"`
	Analysts int     `json:"analysts"` // who received answers
	Exceeded int     `json:"exceeded"` // of them, those whose answers exceed the budget
	Spent    float64 `json:"spent"`    // share of the budget, of the analyst with the largest one; at most 1000
}
