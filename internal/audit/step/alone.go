package step

import (
	"context"
	"crypto/rand"
	mathrand "math/rand/v2"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/audit/evidence"
	"github.com/dpwatch/dpwatch/replay"
)

// Alone runs the steps of one audit without pauses, for commands.
type Alone struct {
	Copies *Copies // nil = they are not replaced
	Renew  func(context.Context) (*Worlds, error)
	Begin  func(what string, measuring bool) // is called before each step; may be nil
	Played func(replay.Batch)                // is called after each batch; may be nil
}

// Minimal number of rounds per batch. Separate trials take longer.
const (
	aloneBatch   = 25
	confirmBatch = 8
)

// Evidence returns the empty evidence of a statement. The error rate of opt is shared among the neighbours, which is
// sound although they share the trials on D0. The error is an *analysis.InfeasibleError if the budget is too small to
// refute the claim.
func Evidence(claim analysis.Claim, opt analysis.Options, s replay.Statement) (*evidence.Evidence, error) {
	neighbours := len(s.Worlds) - 1
	opt.Confidence, opt.Salt = 1-(1-opt.Confidence)/float64(neighbours), rand.Text()
	if len(s.Then) > 0 { // every trial has a session of its own
		return evidence.New(claim, opt, neighbours)
	}
	return evidence.NewReplayed(claim, opt, neighbours, s.Hoist != nil)
}

// Decide runs steps until an audit is decided. Unjudgeable says of an error whether the audit ends without a
// conclusion.
func (o *Alone) Decide(ctx context.Context, p Player, a Audit) (Audit, []Finding, error) {
	var all []Finding
	for done := false; !done; done = a.Evidence.Decided() {
		var found []Finding
		var err error
		if a, found, err = o.Step(ctx, p, a); err != nil {
			return a, nil, err
		}
		all = append(all, found...)
	}
	return a, all, nil
}

// Step runs one step.
func (o *Alone) Step(ctx context.Context, p Player, a Audit) (Audit, []Finding, error) {
	e := a.Evidence
	what, limits := "trials", Limits{Batch: aloneBatch, Renew: o.Renew}
	switch {
	case e.Controlling():
		what = "controlling"
	case e.Confirming():
		if what, limits.Batch = "confirming", confirmBatch; a.Measure > 0 {
			what = "measuring"
		}
	}
	limits.More = func(b replay.Batch) bool {
		if o.Played != nil {
			o.Played(b)
		}
		return o.Copies == nil || e.Decided() || o.Copies.stay(ctx)
	}
	if o.Copies != nil {
		a.Copies, limits.Environment = o.Copies.version, o.Copies.environment
	}
	if o.Begin != nil {
		o.Begin(what, a.Measure > 0)
	}
	a.Seed = mathrand.Uint64()
	a, found, err := Step(ctx, p, a, limits)
	if err != nil {
		err = o.Copies.Explain(ctx, err)
	}
	return a, found, err
}
