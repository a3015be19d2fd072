package audit

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/dpwatch/dpwatch/internal/audit/environment"
	"github.com/dpwatch/dpwatch/internal/audit/recognize"
	"github.com/dpwatch/dpwatch/internal/audit/turn"
)

// stages are what an auditor and a worker have in common.
type stages struct {
	recognizer *recognize.Recognizer
	env        *environment.Reader
	catalogs   *environment.Catalogs
	texts      turn.Texts
	runner     *turn.Runner
}

// newStages returns the stages. changed is called for another reading of the copies or the engine. The caller may set
// what the catalogs call.
func newStages(o *Options, g *guard, m *replayMetrics, changed func(before, after *environment.Environment)) stages {
	s := stages{
		recognizer: recognize.New(o.Rewriter, o.Unclaimed, o.Announce, func(r any) { g.recovered("analyze", r) }, o.Evaluate),
		env:        newEnvironment(o, changed),
		catalogs:   environment.NewCatalogs(o.Renew, o.RenewEvery),
		texts:      turn.Texts{D0: o.D0, D1: o.D1, Own: o.OwnText},
	}
	s.catalogs.Use, s.catalogs.Failed, s.catalogs.Adopted = s.recognizer.Use, func(error) {}, func(bool) {}
	s.catalogs.Before = func(ctx context.Context) { _ = s.env.ReadEngine(ctx) } // the catalogs then have its functions
	s.runner = &turn.Runner{
		Player: o.Player, Environment: s.env.Read, Budget: o.Budget, Now: o.Now, Seed: o.Seed, Hoisting: newHoisting(o),
		VaryText: o.VaryText, Batch: o.BatchTrials, Rounds: o.TurnTrials, Counted: m.batch, Recovered: g.recovered,
	}
	return s
}

// run runs in a group what keeps the stages up to date.
func (s *stages) run(ctx context.Context, group *errgroup.Group, o *Options, g *guard) {
	held := func() bool { return o.Gate != nil && o.Gate.State().Held != "" }
	group.Go(g.loop(ctx, "close replays that rest", func(ctx context.Context) { s.runner.CloseResting(ctx, held) }))
	if o.Renew != nil {
		group.Go(g.loop(ctx, "read the catalogs", s.catalogs.Run))
	}
	if o.Gate != nil {
		group.Go(g.loop(ctx, "pace replays", o.Gate.Run))
	}
}
