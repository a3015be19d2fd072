package oneoff

import (
	"context"
	"errors"
	"fmt"
	"iter"
	mathrand "math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dpwatch/dpwatch/internal/app/setup"
	"github.com/dpwatch/dpwatch/internal/app/stages"
	"github.com/dpwatch/dpwatch/internal/audit/step"
	"github.com/dpwatch/dpwatch/internal/read"
	"github.com/dpwatch/dpwatch/replay"
	"github.com/dpwatch/dpwatch/replay/neighbours"
	"github.com/dpwatch/dpwatch/rewrite"
)

// recreatable returns why the copies cannot be made anew, and leaves one neighbour in D1.
func (f *question) recreatable() error {
	if err := f.copyable("--recreate"); err != nil {
		return err
	}
	switch {
	case f.Timing > 0:
		return errors.New("--timing compares the latencies of the same copies: leave out --timing or --recreate")
	case f.Given["d1"] && len(f.D1) != 1:
		return errors.New("--recreate audits one neighbour: name one with --d1")
	}
	f.D1 = f.D1[:1]
	return nil
}

// copyable returns why copies with new names cannot be made for a flag.
func (f *question) copyable(flag string) error {
	if f.config == nil || !f.config.Neighbours.Configured() {
		return fmt.Errorf("%s needs --config with neighbours.source, from which copies are made; for copies made by hand, make others and audit once more", flag)
	}
	for _, name := range []string{"dsn", "d0", "from", "twin"} {
		if f.Given[name] {
			return fmt.Errorf("%s makes copies of the configuration's tables, with names of their own: leave out --%s", flag, name)
		}
	}
	if len(f.Engines) > 1 {
		return fmt.Errorf("%s needs queries that go to the shadow database, or one engine for all copies: an engine for each copy (shadow.engine.dsn, --engine) does not find copies with new names", flag)
	}
	for _, d1 := range f.D1 {
		if known := f.config.Shadow.D1; !slices.Contains(known, d1) {
			return fmt.Errorf("--d1 %s is none of shadow.d1: name one of %s", d1, strings.Join(known, ", "))
		}
	}
	return nil
}

// auditAnew is Audit with copies that are made anew for each pair of trials.
func (f question) auditAnew(ctx context.Context, env setup.Environment, progress Progress) (c read.Conclusion, configured *rewrite.Claim, err error) {
	o, err := stages.NeighbourOptions(*f.config)
	if err != nil {
		return c, nil, err
	}
	if env.Removes != nil {
		env.Removes()
	}
	pairs, err := neighbours.OpenRecreation(ctx, o, []int{neighbours.AllRows, slices.Index(o.D1, f.D1[0])}, 0)
	if err != nil {
		return c, nil, fmt.Errorf("make copies: %w", err)
	}
	defer closeRecreation(ctx, env, pairs)
	schemas, err := pairs.Make(ctx)
	if err != nil {
		return c, nil, err
	}
	first := f
	first.D0, first.D1, first.Hoist = schemas[0], schemas[1:], false
	a, err := first.prepare(ctx, env, progress, true)
	if err != nil {
		return c, nil, err
	}
	a.player, a.copies = &recreation{a.player, pairs, first.replayOptions(), a.plans}, nil
	a.D0, a.D1 = f.D0, f.D1
	c, err = a.run(ctx)
	return c, a.configured, err
}

// closeRecreation removes the copies that were made anew.
func closeRecreation(ctx context.Context, env setup.Environment, r *neighbours.Recreation) {
	if err := r.Close(ctx); err != nil {
		fmt.Fprintln(env.Stderr, "dpwatch: warning:", err)
	}
}

// recreation is a player of trials, each pair of which has its own copies. The first copies, with whose names the
// statement is written, are those of trials that do not count: what they read is verified.
type recreation struct {
	step.Player // on the first copies
	pairs       *neighbours.Recreation
	options     replay.Options
	plans       []*rewrite.Plan // of the statement and of those after it
}

// Start prepares trials.
func (r *recreation) Start(s replay.Statement, seed uint64) (step.Trials, error) {
	if s.Separate == nil {
		s.Separate = &replay.Separation{}
	}
	first, err := r.Player.Start(s, seed)
	return &recreatedTrials{Trials: first, recreation: r, statement: s}, err
}

// recreatedTrials are the trials of a statement.
type recreatedTrials struct {
	step.Trials // on the first copies
	*recreation
	statement replay.Statement
}

// Choose does nothing: every trial runs the whole statement, as the first one of its session, and there is one
// neighbour.
func (t *recreatedTrials) Choose(replay.Choice) {}

// Reads verifies what the trials read. That the first copies are the same to the query says nothing of others: what is
// random in a copy may be the same by chance.
func (t *recreatedTrials) Reads(ctx context.Context) (replay.Reads, error) {
	reads, err := t.Trials.Reads(ctx)
	reads.LeftOut = nil
	return reads, err
}

// ahead is the number of pairs that are made and replayed while one before them is.
const ahead = 2

// Stream yields one pair of trials at a time, in the order in which they began: whether one counts does not depend on
// how long its copies took.
func (t *recreatedTrials) Stream(ctx context.Context, _ int) iter.Seq2[replay.Batch, error] {
	type played struct {
		batch replay.Batch
		err   error
	}
	return func(yield func(replay.Batch, error) bool) {
		var all sync.WaitGroup
		defer all.Wait()
		ctx, stop := context.WithCancel(ctx)
		defer stop()
		var begun []chan played
		for {
			for len(begun) <= ahead {
				one := make(chan played, 1)
				begun = append(begun, one)
				all.Go(func() {
					began := time.Now()
					rounds, err := t.round(ctx)
					one <- played{replay.Batch{Rounds: rounds, Took: time.Since(began), Whole: true}, err}
				})
			}
			p := <-begun[0]
			begun = begun[1:]
			if !yield(p.batch, p.err) || p.err != nil {
				return
			}
		}
	}
}

// round makes a pair of copies, runs the statement once on each, and drops them.
func (t *recreatedTrials) round(ctx context.Context) (rounds []replay.Round, err error) {
	pair, err := t.pairs.Make(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, t.pairs.Drop(ctx, pair)) }()
	w, err := onSchemas(t.statement, t.plans, pair, len(pair), false)
	if err != nil {
		return nil, err
	}
	o := t.options
	o.Copies, o.Warn = pair, nil
	player, err := replay.New(o)
	if err != nil {
		return nil, err
	}
	run, err := player.Start(w.Statement, mathrand.Uint64())
	if err != nil {
		return nil, err
	}
	defer run.Close()
	return run.Rounds(ctx, 1)
}

// onSchemas returns a statement with a text for each world, whose schemas are the first ones, and its texts on the
// twin, whose schema is the last one if there is one more; plans are those of the statement and of those after it. If
// each engine sees only its own copy, the texts stay as they are.
func onSchemas(s replay.Statement, plans []*rewrite.Plan, schemas []string, worlds int, ownEngines bool) (step.Worlds, error) {
	w := step.Worlds{Statement: s}
	w.Statement.Then = slices.Clone(s.Then)
	for i, plan := range plans {
		texts := make([]string, len(schemas))
		for world, schema := range schemas {
			var err error
			if texts[world] = plan.Text(); !ownEngines {
				texts[world], err = plan.For(schema)
			}
			switch {
			case err != nil && i > 0:
				return w, fmt.Errorf("%s: %w", placeOf(i-1), err)
			case err != nil:
				return w, err
			}
		}
		w.Twin = append(w.Twin, texts[worlds:]...)
		if i == 0 {
			w.Statement.Worlds = texts[:worlds]
		} else {
			w.Statement.Then[i-1].Worlds = texts[:worlds]
		}
	}
	return w, nil
}
