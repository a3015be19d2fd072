package analysis

import (
	"fmt"
	"math"
	"slices"

	"github.com/dpwatch/dpwatch/analysis/internal/book"
	"github.com/dpwatch/dpwatch/analysis/internal/eprocess"
	"github.com/dpwatch/dpwatch/analysis/internal/score"
)

// Evidence is what an audit has against every epsilon of its grid, in a form that can be joined with that of other
// batches of trials of the same query on the same neighbours.
//
// Audits themselves cannot be merged: every bet must follow from what its own process saw before it, and no order of
// two finished batches makes the bets of both predictable from one past. Their evidence can: while a null holds, a
// trial of either batch multiplies one factor of the product of two wealths by a number with mean at most 1, given all
// trials of both batches before it, so that the product is an e-process for that null, in whatever order the trials
// came. Running maxima are not, which is why only current wealths are kept.
type Evidence struct {
	Claim      Claim
	NoClaim    bool
	Confidence float64
	Batches    []string // names of the batches, sorted
	Pairs      int
	Grid       []GridPoint // ascending
}

// GridPoint is the log-wealth against one epsilon.
type GridPoint struct {
	Epsilon, LogWealth float64
}

// Evidence returns the evidence now, under a name for its batch of trials that no other batch has.
func (a *Audit) Evidence(batch string) Evidence {
	a.look()
	e := Evidence{Claim: a.claim, NoClaim: a.opts.NoClaim, Confidence: a.opts.Confidence, Batches: []string{batch}, Pairs: a.pairs}
	for i, epsilon := range a.grid {
		w := a.lead.Latest
		if i != a.claimAt {
			p := &book.Process{Null: eprocess.NewNull(epsilon, a.claim.Delta), Below: i < a.claimAt}
			a.replay(p, &a.book)
			if w = p.Total(); p.Below {
				w = eprocess.LogAdd(w, a.lead.Latest) - math.Ln2
			}
		}
		e.Grid = append(e.Grid, GridPoint{epsilon, w})
	}
	return e
}

// replay runs a process over all trials so far, with the stakes of a book.
func (a *Audit) replay(p *book.Process, k *book.Book) {
	a.epoch.Claim = a.lead.Latest
	for _, e := range append(slices.Clone(a.book.Epochs), a.epoch) {
		p.Begin(k, e)
		p.End(k, e, &a.bet)
	}
}

// Lower returns the bound: the greatest epsilon of the grid that is rejected now together with all below it; 0 for
// none.
func (e Evidence) Lower() float64 {
	bound := 0.0
	for _, p := range e.Grid {
		if !(p.LogWealth >= -math.Log(1-e.Confidence)) {
			break
		}
		bound = p.Epsilon
	}
	return bound
}

// MergeError says why two pieces of evidence do not belong together.
type MergeError struct{ Reason string }

// Error says it.
func (e *MergeError) Error() string { return "evidence cannot be merged: " + e.Reason }

// Merge joins the evidence of two different batches. It returns a *MergeError for different claims or confidences, for
// a batch that is in both, and for damaged grids.
func (e Evidence) Merge(f Evidence) (Evidence, error) {
	refuse := func(format string, args ...any) (Evidence, error) {
		return Evidence{}, &MergeError{fmt.Sprintf(format, args...)}
	}
	switch {
	case e.Claim != f.Claim || e.NoClaim != f.NoClaim:
		return refuse("the claims differ: %+v and %+v", e.Claim, f.Claim)
	case e.Confidence != f.Confidence:
		return refuse("the confidences differ: %v and %v", e.Confidence, f.Confidence)
	case len(e.Grid) != len(f.Grid):
		return refuse("the grids differ")
	case len(e.Batches) == 0 || len(f.Batches) == 0:
		return refuse("a batch has no name")
	}
	for _, b := range e.Batches {
		if slices.Contains(f.Batches, b) {
			return refuse("batch %q is in both, and its trials would count twice", b)
		}
	}
	m := e
	m.Batches = append(slices.Clone(e.Batches), f.Batches...)
	slices.Sort(m.Batches)
	m.Pairs, m.Grid = e.Pairs+f.Pairs, slices.Clone(e.Grid)
	for i, p := range f.Grid {
		w := e.Grid[i].LogWealth + p.LogWealth
		if p.Epsilon != e.Grid[i].Epsilon || math.IsNaN(w) || math.IsInf(w, 1) {
			return refuse("the grids differ at point %d", i+1)
		}
		m.Grid[i].LogWealth = w
	}
	return m, nil
}

// componentExcesses are the working alternatives that are followed across queries, in nats above the claim.
var componentExcesses = [...]float64{.05, .1, .25, .6, 1.5}

// Components returns the log-wealth against the claim that each of five working alternatives, the same for every audit,
// would have alone: an e-process each, for pooling over queries (package multiplicity). Nil without a claim.
//
// Every one is the audit's own process with the mixture over alternatives replaced by a single one: what is moved
// between scores, and when, follows from the past as before.
func (a *Audit) Components() []float64 {
	if a.claimAt < 0 {
		return nil
	}
	a.look()
	var out []float64
	for _, x := range componentExcesses {
		k := a.book.Remixed(func(m eprocess.Mixture) eprocess.Mixture {
			if &m[0] != &a.mix[score.PairedPrior][0] && &m[0] != &a.mix[score.LawPrior][0] {
				m = eprocess.Mixture{{Share: eprocess.BothSides, Excess: x, Weight: 1}}
			}
			return m
		})
		p := &book.Process{Null: a.lead.Null}
		a.replay(p, k)
		out = append(out, p.Total())
	}
	return out
}
