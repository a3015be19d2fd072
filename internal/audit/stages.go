package audit

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/dpwatch/dpwatch/internal/audit/environment"
	"github.com/dpwatch/dpwatch/internal/audit/fleet"
	"github.com/dpwatch/dpwatch/internal/audit/guard"
	"github.com/dpwatch/dpwatch/internal/audit/recognize"
	"github.com/dpwatch/dpwatch/internal/audit/step"
	"github.com/dpwatch/dpwatch/replay"
)

// newStages returns the stages. changed is called for another reading of the copies or the engine. The caller may set
// what the catalogs call.
func newStages(o *Options, g *guard.Guard, m *replayMetrics, changed func(before, after *environment.Environment)) fleet.Stages {
	s := fleet.Stages{
		Recognizer:  recognize.New(o.Rewriter, o.Unclaimed, o.Announce, func(r any) { g.Recovered("analyze", r) }, o.Evaluate),
		Environment: newEnvironment(o, changed),
		Catalogs:    environment.NewCatalogs(o.Renew, o.RenewEvery),
		Texts:       step.Texts{D0: o.D0, D1: o.D1, Twin: o.Twin, Guard: o.Guard, Own: o.OwnText},
	}
	s.Catalogs.Use, s.Catalogs.Failed, s.Catalogs.Adopted = s.Recognizer.Use, func(error) {}, func(bool) {}
	s.Catalogs.Before = func(ctx context.Context) { _ = s.Environment.ReadEngine(ctx) } // the catalogs then have its functions
	s.Slots = &step.Slots{
		Player: o.Player, Environment: s.Environment.Read, Budget: o.Budget, Now: o.Now, Hoisting: newHoisting(o),
		VaryText: o.VaryText, Batch: o.BatchTrials, Rounds: o.TurnTrials, Counted: m.batch, Recovered: g.Recovered,
	}
	return s
}

// runStages runs in a group what keeps the stages up to date.
func runStages(ctx context.Context, s *fleet.Stages, group *errgroup.Group, o *Options, g *guard.Guard) {
	held := func() bool { return o.Gate != nil && o.Gate.State().Held != "" }
	group.Go(g.Loop(ctx, "close replays that rest", func(ctx context.Context) { s.Slots.CloseResting(ctx, held) }))
	if o.Renew != nil {
		group.Go(g.Loop(ctx, "read the catalogs", s.Catalogs.Run))
	}
	if o.Gate != nil {
		group.Go(g.Loop(ctx, "pace replays", o.Gate.Run))
	}
}

// newEnvironment returns the Reader of an auditor or worker.
func newEnvironment(o *Options, changed func(before, after *environment.Environment)) *environment.Reader {
	copies := func(ctx context.Context) (c environment.Copies, err error) {
		schemas := append([]string{o.D0}, o.D1...)
		if o.Twin != "" {
			fault, guard, err := o.Player.TwinFault(ctx, o.D0)
			if err != nil {
				return c, err
			}
			if c.Twin = fault == ""; c.Twin {
				schemas = append(schemas, o.Twin)
			}
			if c.Guard = guard; guard {
				schemas = append(schemas, o.Guard)
			}
		}
		c.Version, err = o.Player.Epoch(ctx, schemas)
		return c, err
	}
	return environment.New(environment.Sources{Copies: copies, Engine: o.Engine, Production: o.Production}, changed)
}

// newHoisting returns what creates the Hoisting of an audit; nil if trials are not hoisted.
func newHoisting(opt *Options) func(sql string) *replay.Hoisting {
	if !opt.Hoist {
		return nil
	}
	return func(sql string) *replay.Hoisting {
		h := replay.NewHoisting(opt.NoiseFunctions)
		h.Announce = func() func() { return opt.Announce(sql) }
		return h
	}
}
