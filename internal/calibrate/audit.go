package calibrate

import (
	"context"
	"time"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/audit/trial"
	"github.com/dpwatch/dpwatch/replay"
)

// auditor runs audits on two schemas of one database.
type auditor struct {
	player     *replay.Player
	schemas    []string // D0, D1
	confidence float64  // of one audit
	maxTrials  int
}

// newPlayer returns a Player for the schemas of D0 and D1.
func newPlayer(dsn string, copies, searchPath []string, timeout time.Duration) (*replay.Player, error) {
	return replay.New(replay.Options{
		DSN: dsn, Copies: copies, SearchPath: searchPath, StatementTimeout: timeout, ConnectTimeout: 10 * time.Second, MaxRows: 10_000, MaxBytes: 1 << 20,
	})
}

// run audits one pair of queries, from the first trial to the verdict.
func (a *auditor) run(ctx context.Context, s replay.Statement, q zooQuery, claim analysis.Claim) (analysis.Report, error) {
	copies, err := trial.WatchCopies(ctx, a.player, a.schemas)
	if err != nil {
		return analysis.Report{}, err
	}
	once := trial.Once{
		Worlds: trial.Worlds{Player: trial.Replays(a.player), Statement: s}, Copies: copies, Claim: claim,
		Analysis: analysis.Options{Confidence: a.confidence, MaxTrials: a.maxTrials, Unordered: !q.sorted, Query: analysis.Query{Constants: q.constants}},
		Begin:    func() {}, Controlling: func() {}, Confirming: func() {}, Measuring: func(error) {}, Progress: func(int) {},
	}
	e, err := once.Run(ctx)
	if trial.Unjudgeable(err) {
		return analysis.Refused(claim, a.confidence, err.Error()), nil
	}
	if err != nil {
		return analysis.Report{}, err
	}
	return e.Report(0), nil
}
