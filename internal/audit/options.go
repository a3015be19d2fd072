package audit

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/alert"
	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/replay"
	"github.com/dpwatch/dpwatch/replay/throttle"
	"github.com/dpwatch/dpwatch/rewrite"
)

// Options wires an Auditor.
type Options struct {
	Rewriter *rewrite.Rewriter // until Renew gives another
	// Renew returns a Rewriter that knows the databases as they are now; with an error, which Status shows, it may
	// return nil: then the Rewriter stays. nil = Rewriter is for good. It is called by Run before the first query is
	// looked at, then every RenewEvery, and soon after a query was refused for a name that is not known.
	Renew      func(context.Context) (*rewrite.Rewriter, error)
	RenewEvery time.Duration
	Player     *replay.Player
	OwnText    bool           // every world has an engine of its own: statements are replayed as they came, nothing is renamed
	Gate       *throttle.Gate // the Player's pace, or nil
	D0         string         // schema of D0
	D1         []string       // schemas of its neighbours
	Tables     []string       // protected tables without schema, for the check of the shadow database
	VaryText   bool           // the trials of a confirmation differ in a comment: see replay.Separation
	Hoist      bool           // trials may run on what all of them would compute alike
	// NoiseFunctions draw noise whatever the catalog declares them as, by name without schema.
	NoiseFunctions []string

	Analysis    analysis.Options // MaxTrials and Confidence are for one audit, over all its neighbours
	Family      bool             // 1 - Confidence is for all audits together, each having its share in the order of their beginning
	BatchTrials int              // rounds a batch, at least; fewer in first turns and of large results
	TurnTrials  int              // rounds of a turn, about; see turnBounds
	Workers     int
	MaxAudits   int
	PerShape    int   // audits of one user's query with different constants; 0 = 20
	Memory      int64 // estimated bytes of all audits; 0 = no limit
	RetryAfter  time.Duration
	EpochEvery  time.Duration // how often the copies are looked at while nothing is replayed; 0 = 30 s
	ShowSQL     bool
	ShowValues  bool // status, findings and logs hold what comes from rows: group keys, texts, thresholds, the server's messages

	// Announce is called before the SQL library, which is C, reads a statement, and the function that it returns afterwards:
	// whoever watches the process can then say which statement it ended on. It may be nil.
	Announce func(sql string) (done func())
	// Route names the engine that a query went to; nil, or "" = there is only one.
	Route     func(capture.Query) string
	OnFinding func(alert.Finding)
	Logger    *zap.Logger
	Metrics   prometheus.Registerer
	Now       func() time.Time
	Seed      func() uint64 // for the order of the worlds
}

// defaultPerShape is how many audits one user's query has with different constants, parameters, settings or claims.
const defaultPerShape = 20
