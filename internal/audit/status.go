package audit

import (
	"maps"
	"slices"
	"time"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/replay"
	"github.com/dpwatch/dpwatch/replay/throttle"
)

// Status is everything that the auditor knows, for pages, commands and scripts. Values of rows are withheld in it unless
// Options.ShowValues is set.
type Status struct {
	At       time.Time         `json:"at"`
	Captured uint64            `json:"captured"`           // queries taken
	Skipped  map[string]uint64 `json:"skipped"`            // not audited, by reason
	Evicted  map[string]uint64 `json:"evicted"`            // audits forgotten, by reason
	Coverage Coverage          `json:"coverage"`           // how much of what could be audited is
	Memory   Memory            `json:"memory"`             // of the audits
	Faults   uint64            `json:"replay_faults"`      // batches that could not be replayed
	Shadow   string            `json:"shadow,omitempty"`   // what is wrong with the shadow database; empty = nothing known
	Catalog  string            `json:"catalog,omitempty"`  // why a catalog could not be read last time; rewriting then assumes more
	Panics   uint64            `json:"recovered_panics"`   // in audit goroutines
	Resting  int               `json:"resting,omitempty"`  // audits between two turns whose sessions stay open, with the tables of hoisting
	Audits   []Entry           `json:"audits"`             // in the order in which they were first seen
	Records  []Record          `json:"records,omitempty"`  // violations whose audits gave way to others
	Warnings []string          `json:"warnings,omitempty"` // about the set-up
	Pace     *throttle.State   `json:"pace,omitempty"`     // whether replays are held, and why
}

// Coverage is how much of the DP queries that could be audited belongs to an audit.
type Coverage struct {
	Queries        float64 `json:"queries"`             // distinct ones so far, estimated beyond a thousand
	AuditedQueries float64 `json:"audited_query_share"` // of Queries, the share that has an audit or had one that was decided
	Owners         int     `json:"owners"`              // users and databases that have audits
}

// Memory is what the audits hold.
type Memory struct {
	Audits int64 `json:"audit_bytes"`  // estimated
	Budget int64 `json:"budget_bytes"` // 0 = no limit
}

// Status returns a copy of everything known now.
func (a *Auditor) Status() Status {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := Status{
		At: a.opt.Now(), Captured: a.captured, Skipped: maps.Clone(a.skipped), Evicted: maps.Clone(a.evictions),
		Faults: a.faults, Panics: a.panics, Shadow: a.shadow, Catalog: a.catalog, Warnings: a.warnings,
		Resting: a.idle.count(),
		Memory:  Memory{Audits: a.roster.Bytes(), Budget: a.opt.Memory},
		Records: a.records.list(),
		Audits:  make([]Entry, len(a.order)),
	}
	s.Coverage.Queries, s.Coverage.AuditedQueries = a.coverage.queries()
	s.Coverage.Owners = a.roster.Owners()
	if a.opt.Gate != nil {
		state := a.opt.Gate.State()
		s.Pace = &state
	}
	for i, j := range a.order {
		s.Audits[i] = j.entry(&a.opt)
	}
	slices.SortStableFunc(s.Audits, func(x, y Entry) int { return x.FirstSeen.Compare(y.FirstSeen) })
	return s
}

// Entry is one audit: one statement with its constants, parameters, settings and claim.
type Entry struct {
	ID        string    `json:"id"`              // first 12 hex digits of Key
	Key       string    `json:"key"`             // identity: see rewrite.Plan; with several routes, the route too
	Route     string    `json:"route,omitempty"` // the engine that it was captured at, where there are several
	Group     string    `json:"fingerprint"`     // the same statement with other constants shares it
	Summary   string    `json:"summary"`         // without literals
	User      string    `json:"user"`
	Database  string    `json:"database"`
	App       string    `json:"application_name,omitempty"`
	Neighbour string    `json:"neighbour"` // the D1 schema that Report is about: the worst
	Seen      uint64    `json:"seen"`      // times that clients ran it
	FirstSeen time.Time `json:"first_seen"`
	LastSeen  time.Time `json:"last_seen"`
	State     State     `json:"state"`
	// Verdict is the report's for a decided audit and a violation, and the state where there is none yet.
	Verdict   string   `json:"verdict"`
	Restarts  int      `json:"restarts,omitempty"` // times that its evidence was dropped because the copies were made anew
	Trouble   string   `json:"trouble,omitempty"`  // why it waits, or why it cannot be judged
	ClaimRule string   `json:"claim_rule,omitempty"`
	Assumed   []string `json:"assumed,omitempty"` // what the rewrite rests on without having been told
	// Report is the present state of the evidence. Its verdict is empty as long as there is none.
	Report *analysis.Report `json:"report,omitempty"`
	// Partitions is how many partitions there are; Report has those with the largest estimates.
	Partitions int      `json:"partitions,omitempty"`
	SQL        *SQLPair `json:"sql,omitempty"` // only where log.sql is on: it holds literals
	// Hoisting is whether trials run on what all of them compute alike; nil where audit.hoist is off.
	Hoisting *replay.HoistReport `json:"hoisting,omitempty"`
	// Confirming: the first trials show a violation, and Report.Confirmation is what fresh trials, each in a session of its own,
	// show so far. It is reported when they show it as well.
	Confirming bool `json:"confirming,omitempty"`
	// Neighbours is every neighbour's part, where there are several.
	Neighbours []Neighbour `json:"neighbours,omitempty"`
}

// Neighbour is what one neighbour of D0 showed.
type Neighbour struct {
	Schema   string           `json:"schema"`
	Verdict  analysis.Verdict `json:"verdict"` // empty as long as there is none
	Lower    analysis.Float   `json:"epsilon_lower"`
	Estimate analysis.Float   `json:"epsilon_estimate"`
}

// SQLPair is a statement as it is replayed on each world.
type SQLPair struct {
	D0 string `json:"d0"`
	D1 string `json:"d1"`
}
