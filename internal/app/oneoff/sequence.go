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
func (f *Options) queries() int {
	if len(f.following) == 0 {
		return 0
	}
	return 1 + len(f.following)
}

// placeOf names the statement after the first one at index i.
func placeOf(i int) string { return fmt.Sprintf("query %d of the sequence", i+2) }

// sequence adds the following statements to s, which has first, and composes their claims with its claim.
func (f *Options) sequence(first capture.Query, s *replay.Statement, analyze func(capture.Query) (*rewrite.Plan, error)) error {
	first.Then = f.following
	for i := range f.following {
		where, q := placeOf(i), first.Step(i+1)
		plan, err := analyze(q)
		if err != nil {
			return fmt.Errorf("%s: %w", where, Refusal(q.SQL, err))
		}
		if f.Loaded != nil && !maps.Equal(s.Settings, plan.Settings) || s.SearchPath != nil && !slices.Equal(s.SearchPath, plan.SearchPath) {
			return fmt.Errorf("%s: its settings or its search path differ from those of the first query: a sequence runs in one session, with one path", where)
		}
		texts, err := f.texts(plan)
		if err != nil {
			return fmt.Errorf("%s: %w", where, err)
		}
		asCaptured := f.Captured != nil
		s.Then = append(s.Then, replay.Step{Worlds: texts, Params: q.Params, Simple: asCaptured && q.Protocol == capture.Simple, Named: asCaptured && q.Named})
		s.Beside = slices.Concat(s.Beside, plan.Beside)
		f.sorted, f.facts = f.sorted && plan.Sorted, f.facts.With(plan.Facts)
		if f.Claimed != nil && plan.Claim != nil {
			so := *f.Claimed
			so.Source = f.Composition
			f.Claimed = rewrite.Compose(&so, plan.Claim)
		} else {
			f.Claimed = nil
		}
		if err := f.compose(plan, where); err != nil {
			return err
		}
	}
	if f.Delta >= 1 {
		return fmt.Errorf("the claims of the sequence have delta %g together, which allows everything: give --delta", f.Delta)
	}
	return nil
}

// compose adds the claim of a further query to that of the sequence, unless --epsilon is given, which is the claim of
// the whole sequence. See docs/statistics.md for the theorems.
func (f *Options) compose(plan *rewrite.Plan, where string) error {
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
	f.source = f.Composition + " of the claims"
	all := rewrite.Compose(&rewrite.Claim{Epsilon: f.Epsilon, Delta: f.Delta, Curve: f.Curve, Source: f.Composition}, step)
	f.Epsilon, f.Delta, f.Curve = all.Epsilon, all.Delta, all.Curve
	return nil
}
