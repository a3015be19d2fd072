package trial

import (
	"context"
	"crypto/rand"
	mathrand "math/rand/v2"
	"time"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/audit/evidence"
	"github.com/dpwatch/dpwatch/internal/audit/timing"
	"github.com/dpwatch/dpwatch/replay"
)

// Once is the audit of one query without pauses, for dpwatch audit. Trials, evidence and confirmation are those of an
// Auditor.
type Once struct {
	Worlds
	Copies   *Copies // nil = they are not replaced
	Claim    analysis.Claim
	Analysis analysis.Options // Confidence holds for all neighbours together
	VaryText bool             // see replay.Separation
	Unlike   string           // see evidence.Evidence.SetUnlike
	Measure  int              // rounds after a violation, with which its bound grows; 0 = none

	// Renew makes the copies anew, after the control of a suspicion: the control is repeated on them, and the violation
	// is confirmed on them. It returns nil if that cannot be done. nil = copies are not made anew.
	Renew   func(ctx context.Context) (*Worlds, error)
	renewed *Worlds // for the present suspicion

	// Begin is called before the first trials, and before they go on after a confirmation that failed.
	Begin func()
	// Controlling is called before the control begins, and Confirming before the confirmation.
	Controlling, Confirming func()
	// Measuring is called before the measurement begins, and again with the reason if it failed: the evidence is then
	// that of the violation.
	Measuring func(failed error)
	// Progress is called after each batch of rounds.
	Progress func(rounds int)
	// Read takes what the first trials read, and those of the control on the first copies, which have places. It may be
	// nil.
	Read func(r *replay.Reads, places []int)
}

// Worlds are copies of the data, and a statement on them.
type Worlds struct {
	Player    Player
	Statement replay.Statement // one text per world, D0 first
	Twin      []string         // the texts of the statement and of those of its Then on the twin of D0; nil = there is none
}

// Minimal number of rounds per batch. Separate trials take longer.
const (
	onceBatch    = 25
	confirmBatch = 8
)

// Evidence returns an empty Evidence. The error rate is shared among the neighbours, which is sound although they share
// the trials on D0.
func (o *Once) Evidence() (*evidence.Evidence, error) {
	neighbours := len(o.Statement.Worlds) - 1
	opt := o.Analysis
	opt.Confidence, opt.Salt = 1-(1-opt.Confidence)/float64(neighbours), rand.Text()
	e, err := evidence.New(o.Claim, opt, neighbours)
	if len(o.Statement.Then) == 0 { // otherwise every trial has a session of its own
		e, err = evidence.NewReplayed(o.Claim, opt, neighbours, o.Statement.Hoist != nil)
	}
	if err == nil {
		e.SetUnlike(o.Unlike)
	}
	return e, err
}

// Run replays the query until it is decided. The error is an *analysis.InfeasibleError if the budget is too small to
// refute this claim, a *replay.ReadsError if trials do not read the copies, and a *replay.EndsError if they end their
// sessions: see Unjudgeable.
func (o *Once) Run(ctx context.Context) (*evidence.Evidence, error) {
	e, err := o.Evidence()
	if err != nil {
		return nil, err
	}
	for err == nil && !e.Decided() {
		o.renewed = nil
		o.Begin()
		if err = o.gather(ctx, e, onceBatch); err != nil || !e.Found() {
			break
		}
		if o.Twin != nil {
			if err = o.control(ctx, e); err != nil || !e.Found() {
				break
			}
		}
		if err = e.Confirm(); err == nil {
			o.Confirming()
			err = o.gather(ctx, e, confirmBatch)
		}
	}
	if err = o.Copies.Explain(ctx, err); err == nil && o.Measure > 0 && e.Found() {
		return o.measure(ctx, e)
	}
	return e, err
}

// Suspect replays the query until the first trials show a violation, without control and confirmation, or their number
// is used.
func (o *Once) Suspect(ctx context.Context) (*evidence.Evidence, error) {
	e, err := o.Evidence()
	if err == nil {
		err = o.gather(ctx, e, onceBatch)
	}
	return e, err
}

// control controls a suspicion, and once more on copies that are made anew.
func (o *Once) control(ctx context.Context, e *evidence.Evidence) error {
	for {
		if err := e.Control(); err != nil {
			return err
		}
		o.Controlling()
		if err := o.gather(ctx, e, onceBatch); err != nil || !e.Found() || o.Renew == nil || o.renewed != nil {
			return err
		}
		var err error
		if o.renewed, err = o.Renew(ctx); o.renewed == nil {
			return err
		}
	}
}

// measure measures a violation. It returns the evidence as it was if that fails.
func (o *Once) measure(ctx context.Context, e *evidence.Evidence) (*evidence.Evidence, error) {
	state, err := e.MarshalBinary()
	if err != nil {
		return e, err
	}
	if !e.Measure(o.Measure) {
		return e, nil
	}
	o.Measuring(nil)
	err = o.gather(ctx, e, confirmBatch)
	if err = o.Copies.Explain(ctx, err); err == nil {
		return e, nil
	}
	o.Measuring(err)
	return e, e.UnmarshalBinary(state)
}

// gather replays rounds until the evidence is decided.
func (o *Once) gather(ctx context.Context, e *evidence.Evidence, rounds int) error {
	at := &o.Worlds
	if o.renewed != nil {
		at = o.renewed
	}
	s := OnWorlds(at.Statement, e, at.Twin)
	s.Separate = Separation(e, o.VaryText)
	if s.Separate == nil && len(s.Then) > 0 {
		s.Separate = &replay.Separation{VaryText: o.VaryText}
	}
	run, err := at.Player.Start(s, mathrand.Uint64())
	if err != nil {
		return err
	}
	defer run.Close()
	reads, err := Reads(ctx, run, e)
	if err != nil {
		return err
	}
	if reads != nil && o.Read != nil && o.renewed == nil {
		o.Read(reads, s.Places)
	}
	var replaced error
	err = Gather(ctx, run, rounds, e, func(batch replay.Batch) bool {
		o.Progress(len(batch.Rounds))
		if !e.Decided() {
			replaced = o.Copies.due(ctx)
		}
		return replaced == nil
	})
	if err == nil {
		err = replaced
	}
	return err
}

// Time compares the latencies of the query on D0 and on a neighbour, by its number from 1, with the given number of
// pairs.
func (o *Once) Time(ctx context.Context, neighbour, pairs int) (timing.Report, error) {
	s := o.Statement
	s.Hoist, s.Separate = nil, nil
	run, err := o.Player.Start(s, mathrand.Uint64())
	if err != nil {
		return timing.Report{}, err
	}
	defer run.Close()
	var compared timing.Comparison
	err = run.Time(ctx, neighbour, func(d0, d1 time.Duration) bool {
		compared.Add(d0, d1)
		o.Progress(1)
		return compared.Pairs() < pairs
	})
	return compared.Report(o.Analysis.Confidence), o.Copies.Explain(ctx, err)
}
