package audit

import (
	"time"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/replay"
	"github.com/dpwatch/dpwatch/replay/gentle"
)

// Status is everything that the auditor knows, for pages, commands and scripts. Values of rows are withheld in it unless
// Options.ShowValues is set.
type Status struct {
	At       time.Time         `json:"at"`
	Captured uint64            `json:"captured"`           // queries taken
	Skipped  map[string]uint64 `json:"skipped"`            // not audited, by reason
	Evicted  uint64            `json:"evicted"`            // decided audits forgotten to make room
	Faults   uint64            `json:"replay_faults"`      // batches that could not be replayed
	Shadow   string            `json:"shadow,omitempty"`   // what is wrong with the shadow database; empty = nothing known
	Catalog  string            `json:"catalog,omitempty"`  // why a catalog could not be read last time; rewriting then assumes more
	Panics   uint64            `json:"recovered_panics"`   // in audit goroutines
	Resting  int               `json:"resting,omitempty"`  // audits between two turns whose sessions stay open, with the tables of hoisting
	Audits   []Entry           `json:"audits"`             // in the order in which they were first seen
	Warnings []string          `json:"warnings,omitempty"` // about the set-up
	Pace     *gentle.State     `json:"pace,omitempty"`     // whether replays are held, and why
}

// State is how far an audit is.
type State string

// The states of an audit.
const (
	Queued  State = "queued"  // waiting for a worker
	Running State = "running" // trials are being replayed
	Waiting State = "waiting" // cannot be replayed now; tried again
	Decided State = "decided" // a verdict, or the budget is used
)

// Entry is one audit: one statement with its constants, parameters, settings and claim.
type Entry struct {
	ID        string           `json:"id"`              // first 12 hex digits of Key
	Key       string           `json:"key"`             // identity: see rewrite.Plan; with several routes, the route too
	Route     string           `json:"route,omitempty"` // the engine that it was captured at, where there are several
	Group     string           `json:"fingerprint"`     // the same statement with other constants shares it
	Summary   string           `json:"summary"`         // without literals
	User      string           `json:"user"`
	Database  string           `json:"database"`
	App       string           `json:"application_name,omitempty"`
	Neighbour string           `json:"neighbour"` // the D1 schema that Report is about: the worst
	Seen      uint64           `json:"seen"`      // times that clients ran it
	FirstSeen time.Time        `json:"first_seen"`
	LastSeen  time.Time        `json:"last_seen"`
	State     State            `json:"state"`
	Restarts  int              `json:"restarts,omitempty"` // times that its evidence was dropped because the copies were made anew
	Trouble   string           `json:"trouble,omitempty"`  // why it waits, or why it cannot be judged
	ClaimRule string           `json:"claim_rule,omitempty"`
	Assumed   []string         `json:"assumed,omitempty"` // what the rewrite rests on without having been told
	Report    *analysis.Report `json:"report,omitempty"`
	SQL       *SQLPair         `json:"sql,omitempty"` // only where log.sql is on: it holds literals
	// Hoisting is whether trials run on what all of them compute alike; nil where audit.hoist is off.
	Hoisting *replay.HoistReport `json:"hoisting,omitempty"`
	// Neighbours is every neighbour's part, where there are several.
	Neighbours []Neighbour `json:"neighbours,omitempty"`
}

// Neighbour is what one neighbour of D0 showed.
type Neighbour struct {
	Schema   string           `json:"schema"`
	Verdict  analysis.Verdict `json:"verdict"`
	Lower    analysis.Float   `json:"epsilon_lower"`
	Estimate analysis.Float   `json:"epsilon_estimate"`
}

// SQLPair is a statement as it is replayed on each world.
type SQLPair struct {
	D0 string `json:"d0"`
	D1 string `json:"d1"`
}
