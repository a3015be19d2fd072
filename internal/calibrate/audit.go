package calibrate

import (
	"context"
	"time"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/audit/step"
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
	copies, err := step.WatchCopies(ctx, a.player, a.schemas)
	if err != nil {
		return analysis.Report{}, err
	}
	opt := analysis.Options{Confidence: a.confidence, MaxTrials: a.maxTrials, Unordered: !q.sorted, Query: analysis.Query{Constants: q.constants}}
	one := step.Audit{Statement: s, Hoist: s.Hoist}
	if one.Evidence, err = step.Evidence(claim, opt, s); err == nil {
		one, _, err = (&step.Alone{Copies: copies}).Decide(ctx, step.Replays(a.player), one)
	}
	if step.Unjudgeable(err) {
		return analysis.Refused(claim, a.confidence, err.Error()), nil
	}
	if err != nil {
		return analysis.Report{}, err
	}
	return one.Evidence.Report(0), nil
}
