package step

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/audit/evidence"
	"github.com/dpwatch/dpwatch/replay"
)

// Player runs trials: Replays of a replay.Player, or a simulation.
type Player interface {
	Check(ctx context.Context, d0 string, d1, tables []string) (warnings []string, err error)
	Epoch(ctx context.Context, schemas []string) (string, error)
	TwinFault(ctx context.Context, d0 string) (fault string, guard bool, err error)
	Start(s replay.Statement, seed uint64) (Trials, error)
}

// Trials are the trials of a statement; see replay.Run.
type Trials interface {
	Reads(ctx context.Context) (replay.Reads, error)
	Stream(ctx context.Context, n int) iter.Seq2[replay.Batch, error]
	Choose(c replay.Choice)
	Time(ctx context.Context, world int, add func(d0, other time.Duration) bool) error
	Rest() bool
	Close()
}

// Replays returns a Player that replays on databases.
func Replays(p *replay.Player) Player { return replays{p} }

type replays struct{ *replay.Player }

func (r replays) Start(s replay.Statement, seed uint64) (Trials, error) {
	run, err := r.Player.Start(s, seed)
	if err != nil {
		return nil, err
	}
	return run, nil
}

// look makes a Player that can read the rows of the copies, whatever counters say, do so when it is asked for their
// state the next time.
func look(p Player) {
	if of, ok := p.(interface{ Look() }); ok {
		of.Look()
	}
}

// readsOf verifies, unless that was done for the evidence before, that trials read the copies, and whether they read
// the same on all. reads is what they read; nil = it was done before. The error may be a *replay.ReadsError. The
// evidence may be decided afterwards: no trials are needed.
func readsOf(ctx context.Context, run Trials, e *evidence.Evidence) (reads *replay.Reads, err error) {
	if e.ReadsKnown() {
		return nil, nil //nolint:nilnil // see above
	}
	now, err := run.Reads(ctx)
	if err != nil {
		return nil, err
	}
	if now.LeftOut != nil {
		leftOut := make([]evidence.LeftOut, len(now.LeftOut))
		for i, l := range now.LeftOut {
			leftOut[i] = evidence.LeftOut(l)
		}
		e.SetLeftOut(leftOut)
	}
	e.SetReads(now.Unverified, now.Beside)
	return &now, nil
}

// Unjudgeable reports whether an error of trials ends an audit without a conclusion: other trials would meet it, too.
func Unjudgeable(err error) bool {
	return errors.As(err, new(*analysis.InfeasibleError)) || errors.As(err, new(*replay.ReadsError)) || errors.As(err, new(*replay.EndsError))
}

// gather adds the rounds of a run to the evidence, in batches, until it is decided or shows a violation, until a
// confirmation ends, or until a limit is reached.
func gather(ctx context.Context, run Trials, e *evidence.Evidence, l *Limits) error {
	if e.Decided() {
		return nil
	}
	stage := e.Stage()
	n := 0
	run.Choose(choice(e, e.Spared(0)))
	for batch, err := range run.Stream(ctx, l.Batch) {
		if err == nil {
			err = add(e, batch)
		}
		if err != nil {
			return err
		}
		n++
		run.Choose(choice(e, e.Spared(n)))
		if !l.More(batch) || e.Decided() || e.Stage() != stage {
			break
		}
	}
	return nil
}

// choice returns what the next rounds are.
func choice(e *evidence.Evidence, spared []bool) replay.Choice {
	return replay.Choice{Spared: spared, Whole: e.WholeOnly(), Opening: e.Opens()}
}

// add adds the rounds of a batch until the evidence is decided. Each hoisted round is compared with a whole one, as far
// as there are some.
func add(e *evidence.Evidence, batch replay.Batch) error {
	switch {
	case batch.Whole:
		e.Whole()
	case batch.Broken != "":
		e.Refute(batch.Broken)
	}
	stage := e.Stage()
	for i := range max(len(batch.Rounds), len(batch.Hoisted)) {
		if e.Decided() || e.Stage() != stage { // rounds of a confirmation leave out worlds
			break
		}
		var whole replay.Round
		if i < len(batch.Rounds) {
			whole = batch.Rounds[i]
			e.AddPart(whole, batch.Spared)
		}
		if i < len(batch.Hoisted) {
			if err := e.AddHoisted(batch.Hoisted[i], whole, batch.Spared); err != nil {
				return err
			}
		}
	}
	for _, round := range batch.Opening {
		if e.Decided() || e.Stage() != stage {
			break
		}
		e.AddOpening(round, batch.Spared)
	}
	return nil
}
