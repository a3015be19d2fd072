package audit

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/alert"
	"github.com/dpwatch/dpwatch/internal/audit/budget"
	"github.com/dpwatch/dpwatch/internal/audit/defaults"
	"github.com/dpwatch/dpwatch/internal/audit/recognize"
	"github.com/dpwatch/dpwatch/internal/audit/step"
	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/ledger"
	"github.com/dpwatch/dpwatch/internal/pg/engine"
	"github.com/dpwatch/dpwatch/replay/throttle"
	"github.com/dpwatch/dpwatch/rewrite"
)

// Options configures an Auditor.
type Options struct {
	Rewriter *rewrite.Rewriter // until Renew returns another
	// Renew returns a Rewriter for the present catalogs. With an error, which Status shows, it may return nil: then the
	// previous Rewriter stays. nil = the Rewriter never changes. Run calls it before the first query is analysed, then
	// every RenewEvery, and soon after a query was refused for an unknown name or the functions of the shadow database
	// changed. Audits are analysed again with another Rewriter: it may return the same one while the catalogs are the
	// same.
	Renew      func(context.Context) (*rewrite.Rewriter, error)
	RenewEvery time.Duration
	Defaults   *defaults.Defaults // the initial settings of sessions; nil = those of the Rewriter's catalog
	Player     step.Player
	Evaluate   recognize.Evaluate // evaluates claims that are expressions; nil = they are rejected
	OwnText    bool               // every world has an engine of its own: statements are replayed unchanged
	Gate       *throttle.Gate     // the Player's Pace, or nil
	Budget     *budget.Budget     // the Player's Pace in front of Gate; nil = no limit
	Observe    bool               // nothing is replayed: queries are recognized and admitted
	D0         string             // schema of D0
	D1         []string           // schemas of its neighbours
	Twin       string             // schema of a second copy of D0; "" = there is none
	Guard      string             // schema of a third one, which guards control audits; "" = there is none
	Tables     []string           // names of protected tables, for the check of the shadow database
	VaryText   bool               // the trials of a confirmation differ in a comment: see replay.Separation
	Hoist      bool               // trials may reuse the part that is the same in all of them
	// NoiseFunctions lists functions that draw noise whatever the catalog declares, by name without schema.
	NoiseFunctions []string

	Analysis    analysis.Options // MaxTrials and Confidence are for one audit, over all its neighbours
	Family      bool             // 1 - Confidence is for all audits together; each has a share, in the order in which they begin
	Discoveries bool             // with Family: 1 - Confidence is the false discovery rate
	// MeasureTrials is the greatest number of rounds after a violation, with which its bound grows; 0 = none.
	MeasureTrials int
	BatchTrials   int // minimal number of rounds per batch; fewer in first turns and for large results
	TurnTrials    int // approximate number of rounds per turn; see turnBounds
	Workers       int
	MaxAudits     int
	PerShape      int   // audits of one user's query and claim with different constants; 0 = 20
	Memory        int64 // estimated bytes of all audits; 0 = no limit
	RetryAfter    time.Duration
	CloseTimeout  time.Duration // how long Run, when it ends, writes what the ledger does not have yet; 0 = 2s
	RescueAfter   time.Duration // turns of a worker on another machine are withdrawn when it has been silent for so long; 0 = 1m
	Repeat        time.Duration // a query that is run again after so long is audited again, unless it has a violation; 0 = never
	WatchShare    float64       // of the time in turns: decided audits without a violation are watched; 0 = they are not
	WatchEvery    time.Duration // shortest time between two turns of a watched audit; 0 = a minute
	ControlShare  float64       // of the audits: to so many belongs a control audit, in which the twin plays D1; 0 = to none
	EpochEvery    time.Duration // interval of checking the copies while nothing is replayed; 0 = 30 s
	// SequenceWindow is the time within which the queries of a session are a sequence, from its first query on; 0 =
	// sequences are not audited.
	SequenceWindow time.Duration
	ShowSQL        bool
	ShowValues     bool // status, findings and logs include values from rows: group keys, texts, thresholds, the server's messages

	// Ledger opens and acquires the ledger in which audits outlive the process; nil = audits are kept in memory only.
	// Run calls it until it succeeds; audits wait for that.
	Ledger func(context.Context) (*ledger.Engine, error)
	// Recorder opens the ledger for what this process captures while Ledger returns ledger.ErrInUse; nil = it waits in
	// the spool.
	Recorder func(context.Context) (*ledger.Recorder, error)
	// Process is what other processes of the engine read of this one.
	Process ledger.Process
	// Retention is the age beyond which records are removed from the ledger; 0 = they are kept.
	Retention time.Duration

	// Unclaimed gives the policy for unclaimed reads: the first rule that matches; without one they are audited.
	Unclaimed []recognize.UnclaimedRule

	// Budgets are compared with the answers in the ledger every minute.
	Budgets []ledger.PrivacyBudget

	// OnSettled is told what Auditor.Settled returns when a write makes it grow; nil = none is needed.
	OnSettled func(capture.Settled)

	// Spool opens the directory where observations and captured queries wait while the ledger is away; nil = they wait
	// in memory.
	Spool func() (*ledger.Spool, error)

	// Engine reads what the engine on which trials run is now, and Production the engine that clients use: see
	// engine.Snapshot. nil = not known.
	Engine, Production func(context.Context) (*engine.Snapshot, error)

	// Announce is called before the SQL library, which is C, parses a statement, and the function that it returns is
	// called afterwards: a supervisor then knows which statement was being parsed when the process crashed. It may be
	// nil.
	Announce func(sql string) (done func())
	// Route returns the engine of a query; nil, or "" = there is only one.
	Route     func(capture.Query) string
	OnFinding func(alert.Finding) // nil in a worker: the auditor reports violations
	Suspected bool                // also report violations before fresh trials confirm them
	Logger    *zap.Logger
	Metrics   prometheus.Registerer
	Now       func() time.Time
	Seed      func() uint64 // for the order of the worlds
}

// defaultPerShape is the number of audits of one user's query, and one claim, with different constants, parameters or
// settings.
const defaultPerShape = 20

// watchEvery is the shortest time between two turns of a watched audit by default.
const watchEvery = time.Minute

// defaultRescueAfter is how long a worker may be silent before its turns are withdrawn.
const defaultRescueAfter = time.Minute

// complete sets the defaults.
func (o *Options) complete() error {
	if len(o.D1) == 0 {
		return errors.New("audit: no neighbour schema")
	}
	if o.EpochEvery <= 0 {
		o.EpochEvery = 30 * time.Second
	}
	if o.WatchEvery <= 0 {
		o.WatchEvery = watchEvery
	}
	if o.PerShape <= 0 {
		o.PerShape = defaultPerShape
	}
	if o.CloseTimeout <= 0 {
		o.CloseTimeout = 2 * time.Second
	}
	if o.RescueAfter <= 0 {
		o.RescueAfter = defaultRescueAfter
	}
	if o.Announce == nil {
		o.Announce = func(string) func() { return func() {} }
	}
	return nil
}
