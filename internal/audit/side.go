package audit

import (
	"context"
	"math"
	mathrand "math/rand/v2"
	"time"

	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/internal/audit/timing"
)

// compareLatencies compares the latencies of a job's query on D0 and on the neighbour with the strongest evidence, once
// the job has a verdict: a side channel, which does not affect the verdict. Its error rate is the share that the job's
// evidence has of the rate of all audits, so that the comparisons of all audits together have this rate, too. A fault
// leaves the job without a comparison. The caller has the job's turn.
func (a *Auditor) compareLatencies(ctx context.Context, j *job) {
	if a.opt.TimingPairs == 0 || j.plan.Claim == nil || len(j.query.Then) > 0 || !j.evidence.Decided() {
		return
	}
	worst, _ := j.evidence.Worst()
	s := j.statement(false)
	s.Hoist, s.Separate = nil, nil
	run, err := a.opt.Player.Start(s, mathrand.Uint64())
	if err != nil {
		return
	}
	defer run.Close()
	compared, began := new(timing.Comparison), a.opt.Now()
	err = run.Time(ctx, worst+1, func(d0, d1 time.Duration) bool {
		compared.Add(d0, d1)
		return compared.Pairs() < a.opt.TimingPairs && a.opt.Now().Sub(began) < longestTurn && !a.opt.Budget.Spent()
	})
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		a.opt.Logger.Warn("the latency of a query was not compared", zap.String("audit", j.id), zap.String("error", a.say(err)))
		return
	}
	r := compared.Report(-math.Expm1(-j.Threshold))
	a.mu.Lock()
	defer a.mu.Unlock()
	j.life.Timing = &r
	if r.Differs {
		a.opt.Logger.Warn("the latency of a query depends on one person's data: a side channel that its claim does not cover", zap.String("audit", j.id),
			zap.String("db.query.summary", j.plan.Summary), zap.Int("pairs", r.Pairs), zap.Float64("guess_probability_lower", r.GuessLower), zap.Float64("confidence", r.Confidence))
	}
}
