package oneoff

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/replay"
	"github.com/dpwatch/dpwatch/rewrite"
)

// maxSequence is the maximal number of queries of a sequence.
const maxSequence = 8

// queries returns the number of queries of a sequence, 0 for a single query.
func (r *rewritten) queries() int {
	if len(r.plans) < 2 {
		return 0
	}
	return len(r.plans)
}

// placeOf names the statement after the first one at index i.
func placeOf(i int) string { return fmt.Sprintf("query %d of the sequence", i+2) }

// sequence adds the statements after the first one, and composes their claims with its claim.
func (r *rewritten) sequence(f *question, all capture.Query, analyze func(capture.Query) (*rewrite.Plan, error)) error {
	s := &r.statement
	for i := range all.Then {
		where, q := placeOf(i), all.Step(i+1)
		plan, err := analyze(q)
		if err != nil {
			return fmt.Errorf("%s: %w", where, Refusal(q.SQL, err))
		}
		if f.config != nil && !maps.Equal(s.Settings, plan.Settings) || s.SearchPath != nil && !slices.Equal(s.SearchPath, plan.SearchPath) {
			return fmt.Errorf("%s: its settings or its search path differ from those of the first query: a sequence runs in one session, with one path", where)
		}
		r.plans = append(r.plans, plan)
		asCaptured := f.captured != nil
		s.Then = append(s.Then, replay.Step{Params: q.Params, Simple: asCaptured && q.Protocol == capture.Simple, Named: asCaptured && q.Named})
		s.Beside = slices.Concat(s.Beside, plan.Beside)
		r.sorted, r.facts = r.sorted && plan.Sorted, r.facts.With(plan.Facts)
		if r.configured != nil && plan.Claim != nil {
			so := *r.configured
			so.Source = f.Composition
			r.configured = rewrite.Compose(&so, plan.Claim)
		} else {
			r.configured = nil
		}
		if err := r.compose(f, plan, where); err != nil {
			return err
		}
	}
	if r.claim.Delta >= 1 {
		return fmt.Errorf("the claims of the sequence have delta %g together, which allows everything: give --delta", r.claim.Delta)
	}
	return nil
}

// compose adds the claim of a further query to that of the sequence, unless --epsilon is given, which is the claim of
// the whole sequence. See docs/statistics.md for the theorems.
func (r *rewritten) compose(f *question, plan *rewrite.Plan, where string) error {
	if f.Given["epsilon"] {
		return nil
	}
	c := plan.Claim
	if c == nil {
		return errors.New(where + ": the configuration has no claim for it: give --epsilon for the whole sequence, or add a claim to the configuration")
	}
	step := &rewrite.Claim{Epsilon: c.Epsilon, Delta: c.Delta, Curve: c.Curve}
	if f.Given["delta"] {
		step.Delta, step.Curve = 0, ""
	}
	r.claim.Source = f.Composition
	r.claim = *rewrite.Compose(&r.claim, step)
	r.claim.Source = f.Composition + " of the claims"
	return nil
}
