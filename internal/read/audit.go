package read

import (
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/curve"
	"github.com/dpwatch/dpwatch/internal/finding"
	"github.com/dpwatch/dpwatch/replay/hoisting"
)

// Audit is one audit as people see it: of one statement with its constants, parameters, settings and claim. Its JSON
// form is a contract with scripts.
type Audit struct {
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
	// Repeats is how often the audit was repeated from the start because audit.repeat had passed, and Previous the
	// verdict before.
	Repeats  int              `json:"repeats,omitempty"`
	Previous analysis.Verdict `json:"previous_verdict,omitempty"`
	// Engine identifies the version of the engine that gave the evidence; empty before the first trial. EngineRestarts
	// is how often evidence was dropped because the engine changed.
	Engine         string `json:"engine_epoch,omitempty"`
	EngineRestarts int    `json:"engine_restarts,omitempty"`
	// Differ lists the functions of which production has other definitions than the shadow database.
	Differ []string `json:"functions_differ,omitempty"`
	// Standing is the violation that is not resolved. Verdict is then "violation", whatever Report shows of the present
	// audit.
	Standing   *Standing   `json:"violation,omitempty"`
	Resolved   *Resolution `json:"resolved,omitempty"`
	Accepted   *Accepted   `json:"accepted,omitempty"`    // of its violation; nil = it is not accepted
	WaitingFor *WaitingFor `json:"waiting_for,omitempty"` // nil = its trials run, or it is decided
	// Changes is how often the change detector made the audit begin again, and Changed when it did last.
	Changes int         `json:"changes,omitempty"`
	Changed time.Time   `json:"changed,omitzero"`
	Watch   *WatchState `json:"watch,omitempty"`   // nil = not watched
	Trouble string      `json:"trouble,omitempty"` // why it waits, or why it cannot be judged
	// Destinations are where answers went: "to the client", "into table marts.daily".
	Destinations []string `json:"destinations,omitempty"`
	ClaimRule    string   `json:"claim_rule,omitempty"`
	Assumed      []string `json:"assumed,omitempty"` // assumptions of the rewrite
	// Report is the present state of the evidence. Its verdict is empty until there is one.
	Report *analysis.Report `json:"report,omitempty"`
	// Partitions is the number of partitions; Report has those with the largest estimates.
	Partitions int      `json:"partitions,omitempty"`
	SQL        *SQLPair `json:"sql,omitempty"` // only if log.reveal shows it: it holds literals
	// Hoisting describes whether trials are hoisted; nil if audit.hoist is off.
	Hoisting *hoisting.Report `json:"hoisting,omitempty"`
	// Confirming: the first trials show a violation, and Report.Confirmation is the evidence of new trials so far, each
	// in a session of its own. The violation is reported if they show it as well.
	Confirming bool `json:"confirming,omitempty"`
	// Neighbours has an entry for every neighbour if there are several.
	Neighbours []Neighbour `json:"neighbours,omitempty"`

	EngineName string          `json:"-"` // in the ledger and the configuration
	Raw        json.RawMessage `json:"-"` // the audit, or the Record of an evicted one, as a status has it; nil = it is from the ledger
	Encoding   *Encoding       `json:"-"` // nil = the audit may change
}

// Status returns the status of the audit's violation.
func (a *Audit) Status() finding.Status {
	return finding.StatusOf(a.Standing != nil || a.Verdict == string(analysis.Violation), a.Resolved != nil, a.Accepted != nil)
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

// State is the progress of an audit.
type State string

// The states of an audit.
const (
	Queued  State = "queued"  // waiting for its first turn
	Running State = "running" // has begun: its trials run in turns with other audits
	// Unconfirmed: the trials show a violation, which is not reported yet: fresh trials must confirm it, or it is not
	// one yet at its share of the error rate of all audits (audit.Options.Family).
	Unconfirmed State = "unconfirmed"
	// Measuring: a violation whose trials go on, so that its lower bound grows.
	Measuring State = "measuring"
	Waiting   State = "waiting" // cannot be replayed now; will be retried
	Decided   State = "decided" // has a verdict, or the budget is used
	Evicted   State = "evicted" // a violation whose audit was evicted: only a Record is left
)

// States returns every State of an audit in memory.
func States() []State {
	return []State{Queued, Running, Unconfirmed, Measuring, Waiting, Decided}
}

// WaitingFor is why an audit that is not decided has no turn now.
type WaitingFor struct {
	Reason string `json:"reason"` // turn, budget, ledger, shadow_database, replays_held, watch_share or retry
	// Position is the place among Of audits that wait for a turn, approximately: users and kinds of turns alternate. 0
	// = it does not wait for a turn alone.
	Position int       `json:"position,omitempty"`
	Of       int       `json:"of,omitempty"`
	Since    time.Time `json:"since"`
	Until    time.Time `json:"until,omitzero"` // of the next attempt
}

// Accepted is an operator's decision that a violation sends no alert until a date, or until the engine changes.
type Accepted struct {
	Operator string    `json:"operator"`
	At       time.Time `json:"at"`
	Until    time.Time `json:"until"`
	Reason   string    `json:"reason"`
}

// Standing is a violation that is not resolved. It stays when its audit begins again, until a later engine resolves it.
type Standing struct {
	FirstSeen   time.Time      `json:"first_seen"`
	FirstEngine string         `json:"first_engine_epoch"` // engine version when it was first seen
	Engine      string         `json:"engine_epoch"`       // engine version when it was seen last
	Neighbour   string         `json:"neighbour"`
	Claimed     analysis.Float `json:"epsilon_claimed"`
	// Curve is the claim if it is a curve. Claimed and Delta are then the point of it that is refuted.
	Curve    curve.Curve    `json:"claim_curve,omitempty"`
	Delta    float64        `json:"delta_claimed,omitempty"`
	Lower    analysis.Float `json:"epsilon_lower"` // null for deterministic answers
	Estimate analysis.Float `json:"epsilon_estimate"`
	Trials   int            `json:"trials"`
	// DetectedAt is the number of pairs of trials after which it was found, and Threshold the logarithm of the evidence
	// that this took; 0 = not known.
	DetectedAt int     `json:"detected_at,omitempty"`
	Threshold  float64 `json:"threshold_log,omitempty"`
	// FloatingPoint reports that nothing but the lowest bits of numbers showed it.
	FloatingPoint bool `json:"floating_point,omitempty"`
	// Missing is how many more pairs of trials without evidence, with a later engine, resolve it.
	Missing int `json:"pairs_missing,omitempty"`
	// Change is the last change of the engine that concerns the query before the violation was first seen; nil = none
	// is known.
	Change *finding.Change `json:"engine_change,omitempty"`
}

// Resolving returns after how many pairs of trials without evidence a later engine resolves the violation, at a
// threshold: three times as many as had found it, and more if the threshold is higher now; 0 = not known.
func (s *Standing) Resolving(threshold float64) int {
	n := 3 * float64(s.DetectedAt)
	if s.Threshold > 0 && threshold > s.Threshold {
		n *= threshold / s.Threshold
	}
	return int(math.Ceil(n))
}

// Resolution is a violation that a later engine does not have any more.
type Resolution struct {
	Standing
	At                time.Time      `json:"resolved_at"`
	By                string         `json:"resolved_by_engine_epoch"`
	MinimalDetectable analysis.Float `json:"minimal_detectable_epsilon"` // of the audit that resolved it
}

// String describes the resolution for logs and the history.
func (r *Resolution) String() string {
	if lower := float64(r.Lower); float64(r.MinimalDetectable) > lower {
		return fmt.Sprintf("resolved: engine version %s shows no evidence in at least three times the trials that had found the violation; violation of engine version %s, first seen %s",
			r.By, r.Engine, r.FirstSeen.UTC().Format(time.RFC3339))
	}
	return fmt.Sprintf("resolved: engine version %s shows no evidence with trials that would have found epsilon %.3g with 90 %% probability; violation of engine version %s, first seen %s",
		r.By, float64(r.MinimalDetectable), r.Engine, r.FirstSeen.UTC().Format(time.RFC3339))
}

// WatchState describes the change detector of a decided audit.
type WatchState struct {
	Trials int `json:"trials"` // pairs since the verdict
	// Evidence is the logarithm of the detector's sum; at Alarm the audit begins again. Alarm is reached by chance
	// after at least RunLength pairs on average.
	Evidence  analysis.Float `json:"evidence_log"`
	Alarm     analysis.Float `json:"alarm_log"`
	RunLength int            `json:"run_length"`
	Last      time.Time      `json:"last,omitzero"` // end of the last turn
	Trouble   string         `json:"trouble,omitempty"`
}

// Record is the summary of a violation whose audit was evicted.
type Record struct {
	ID        string         `json:"id"`
	Group     string         `json:"fingerprint"`
	Summary   string         `json:"summary"` // without literals
	User      string         `json:"user"`
	Database  string         `json:"database"`
	Route     string         `json:"route,omitempty"`
	Neighbour string         `json:"neighbour"`
	Claimed   analysis.Float `json:"epsilon_claimed"`
	Delta     float64        `json:"delta_claimed,omitempty"`
	Curve     curve.Curve    `json:"claim_curve,omitempty"` // of which the claimed epsilon and delta are the point that is refuted
	Lower     analysis.Float `json:"epsilon_lower"`
	Trials    int            `json:"trials"`
	Seen      uint64         `json:"seen"` // times that clients ran it
	FirstSeen time.Time      `json:"first_seen"`
	LastSeen  time.Time      `json:"last_seen"`
	Accepted  *Accepted      `json:"accepted,omitempty"`
	Standing  *Standing      `json:"violation,omitempty"`
}

// Audit returns the record as an audit, with what the record has.
func (r *Record) Audit() Audit {
	report := analysis.Refused(analysis.Claim{Epsilon: float64(r.Claimed), Delta: r.Delta, Curve: r.Curve}, 0, "")
	report.Verdict, report.EpsilonLower, report.Trials = analysis.Violation, r.Lower, analysis.Trials{D0: r.Trials, D1: r.Trials}
	return Audit{
		ID: r.ID, Key: r.ID, Route: r.Route, Group: r.Group, Summary: r.Summary, User: r.User, Database: r.Database, Neighbour: r.Neighbour, Accepted: r.Accepted,
		Seen: r.Seen, FirstSeen: r.FirstSeen, LastSeen: r.LastSeen, State: Evicted, Verdict: string(analysis.Violation), Report: &report,
	}
}
