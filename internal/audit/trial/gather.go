package trial

import (
	"context"
	"errors"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/audit/evidence"
	"github.com/dpwatch/dpwatch/replay"
)

// Reads verifies, unless that was done for the evidence before, that trials read the copies. reads is what they read;
// nil = it was done before. The error may be a *replay.ReadsError.
func Reads(ctx context.Context, run Trials, e *evidence.Evidence) (reads *replay.Reads, err error) {
	if e.ReadsKnown() {
		return nil, nil //nolint:nilnil // see above
	}
	now, err := run.Reads(ctx)
	if err != nil {
		return nil, err
	}
	e.SetReads(now.Unverified, now.Beside)
	return &now, nil
}

// Unjudgeable reports whether an error of trials ends an audit without a conclusion: other trials would meet it, too.
func Unjudgeable(err error) bool {
	return errors.As(err, new(*analysis.InfeasibleError)) || errors.As(err, new(*replay.ReadsError)) || errors.As(err, new(*replay.EndsError))
}

// Gather adds the rounds of a run to the evidence, in batches of at least the given number, until it is decided or
// shows a violation, until a confirmation ends, or until more returns false. It calls more after each batch.
func Gather(ctx context.Context, run Trials, rounds int, e *evidence.Evidence, more func(replay.Batch) bool) error {
	stage := e.Stage()
	n := 0
	run.Choose(choice(e, nil))
	for batch, err := range run.Stream(ctx, rounds) {
		if err == nil {
			err = add(e, batch)
		}
		if err != nil {
			return err
		}
		n++
		run.Choose(choice(e, e.Spared(n)))
		if !more(batch) || e.Decided() || e.Stage() != stage {
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

// Separation returns how the next trials are replayed: nil before a confirmation.
func Separation(e *evidence.Evidence, varyText bool) *replay.Separation {
	if !e.Separate() {
		return nil
	}
	return &replay.Separation{VaryText: varyText, Skip: e.Settled()}
}
