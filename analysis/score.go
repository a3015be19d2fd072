package analysis

import (
	"math"

	"github.com/dpwatch/dpwatch/analysis/internal/book"
	"github.com/dpwatch/dpwatch/analysis/internal/code"
	"github.com/dpwatch/dpwatch/analysis/internal/event"
	"github.com/dpwatch/dpwatch/analysis/internal/results"
	"github.com/dpwatch/dpwatch/analysis/internal/state"
	"github.com/dpwatch/dpwatch/internal/withheld"
)

// This file holds the table of scores. A new kind of score needs a file with its kind and its statistic, and a line in kinds.

// kinds are all kinds of scores, in the order in which the scores of an audit get their wealth. A saved state names a kind by its
// number here.
var kinds = [...]*kind{
	slotScore, rowsScore, repeatScore, lowBitScore, revealScore, seldomScore,
	laplaceScore, gaussScore, contrastScore, discriminantScore, ratioScore, calibratedScore, calibratedLaplaceScore, productsScore, extremeScore,
	fittedScore, beyondScore, lawScore, fractionScore, finenessScore, orderScore,
}

// kind is what all scores of a kind have in common.
type kind struct {
	name  string                   // Event.Score
	make  func(slot int) statistic // returns a statistic that has learned nothing; slot is 0 for all kinds but slotScore
	where setting                  // an audit has the score in any of these settings

	single, several float64 // shares of the wealth at the start: where one value is audited, and otherwise
	texts           float64 // in place of single, where the value is not a number; 0 = single
	fewSlots        bool    // the score gets wealth only up to maxLearnedSlots slots
	lent            float64 // in place of single or several, once a part of all wealth was lent to the score
	divided         float64 // the share when wealth is divided again and the score is bet on; 0 = single or several
	views           []event.View
	prior           prior

	keeps     bool // its past is kept; otherwise past scores are computed again from the past of the slots
	lopsided  bool // see table
	looksBack bool // the score of a result depends on those of other results
	lifetime       // how long what was learned is used

	event   EventKind                             // of numbers of the score
	whole   bool                                  // every outcome is of this kind of event
	eventOf func(s *series, set uint64) EventKind // in place of both; may be nil
	column  bool                                  // the score is about the column of series.slot
}

// statistic computes a score. What it computes follows from earlier pairs alone, so that every bet on it is predictable. Most
// statistics are a learner or a fitter as well; the joint scores are learned together, by learnJoint.
type statistic interface {
	// score returns the score of a result.
	score(r *result) code.Code
	// words describes a set of the score's bins.
	words(a *Audit, s *series, set uint64) withheld.Text
	// state describes what was learned.
	state(c *state.Codec)
}

// result is what scores are computed from: a result as the reader returned it, and what came before it.
type result struct {
	codes []code.Code // of the slots
	rows  code.Code   // the number of rows, an error or another shape
	order []int32     // keys of the rows
	recalled
	ranges *ranges // of the numbers of the only slot, nil if there are several

	joint          *joint // by which laplace and gauss were computed, nil for not yet
	laplace, gauss code.Code
	ratio          code.Code // by the learned ratio
}

// at returns the code of a slot, absent if it was not seen yet.
func (r *result) at(slot int) code.Code {
	if slot < len(r.codes) {
		return r.codes[slot]
	}
	return code.Category(code.Absent)
}

// setting is a set of properties of an audit's results.
type setting uint8

const (
	everyResult   setting = 1 << iota
	knownColumns          // the columns are known
	severalSlots          // there are several columns or groups
	singleValue           // there is one value
	singleNumber          // and it is a number
	orderedGroups         // there are groups, and the order of rows has a meaning
)

// settings returns what holds for results of a layout.
func (a *Audit) settings(l *results.Layout, seen []*Outcome) setting {
	s := everyResult
	if l.Width >= 0 {
		s |= knownColumns
	}
	switch {
	case l.Keyed || len(l.Measures) > 1:
		s |= severalSlots
	case l.Width >= 0 && (anyNumber(seen) || len(l.Forms) > 0 && l.Forms[0].Parts() > 0):
		s |= singleNumber | singleValue
	case l.Width >= 0:
		s |= singleValue
	}
	if len(l.Keys) > 0 && !a.opts.Unordered {
		s |= orderedGroups
	}
	return s
}

// newSeries returns a score of a kind that has learned nothing.
func newSeries(k *kind, slot int) *series {
	return &series{kind: k, slot: slot, statistic: k.make(slot)}
}

// weight returns the share of the wealth that the scores of a kind start with.
func (k *kind) weight(several bool) float64 {
	if several {
		return k.several
	}
	return k.single
}

// lifetime limits how long what a score has learned is used: while the pairs are fewer than growth times those it was learned from. It needs
// at least the given numbers of pairs now and when it was learned. The zero value stands for a single block.
type lifetime struct {
	pairs, learned int
	growth         float64
}

// lasts reports whether what was learned from a number of pairs is used for another block.
func (u *lifetime) lasts(pairs, learned int) bool {
	return pairs >= u.pairs && learned >= u.learned && float64(pairs) < u.growth*float64(learned)
}

// learner is a statistic that sets its table itself.
type learner interface {
	// learn sets the table of the next block of pairs, nil for no bet.
	learn(a *Audit, s *series, e *book.Epoch)
}

// fitter is a statistic that is bet on only if the past shows a difference between the worlds.
type fitter interface {
	// fit learns from the kept pairs, at least leastJoint of them, and returns the scores of the past. It reports whether these differ
	// between the worlds.
	fit(a *Audit, s *series) (past [2][]code.Code, differ bool)
}

// learnRelation fits a score, unless what it has learned is used for another block.
func (a *Audit) learnRelation(s *series, f fitter) {
	if !s.staked {
		return
	}
	if a.knows(s) || s.kind.lasts(a.pairs, s.learned) {
		if s.table != nil {
			s.carry()
		}
		return
	}
	s.learned = a.pairs
	s.table = nil
	if len(a.slots) == 0 || len(a.specials[0].past[0]) < leastJoint {
		return
	}
	if past, differ := f.fit(a, s); differ {
		s.relearnFrom(past, a.pairs, &a.scratch)
	}
}

// frozen returns a copy of a score's statistic that does not learn any more.
func (s *series) frozen() statistic {
	w := &state.Codec{}
	s.statistic.state(w)
	f := s.kind.make(s.slot)
	f.state(&state.Codec{Reading: true, Buf: w.Buf, Slots: math.MaxInt, Groups: math.MaxInt})
	return f
}

// memoryless is a statistic that keeps nothing of what it learns.
type memoryless struct{}

func (memoryless) state(*state.Codec) {}
