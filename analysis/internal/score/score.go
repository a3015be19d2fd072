package score

import (
	"github.com/dpwatch/dpwatch/analysis/internal/code"
	"github.com/dpwatch/dpwatch/analysis/internal/event"
	"github.com/dpwatch/dpwatch/analysis/internal/state"
	"github.com/dpwatch/dpwatch/internal/withheld"
)

// kinds are all kinds of scores, in the order in which the scores of an audit get their wealth. A saved state names a
// kind by its number here.
var kinds = [...]*kind{
	slotScore, rowsScore, repeatScore, lowBitScore, revealScore, seldomScore,
	laplaceScore, gaussScore, contrastScore, ratioScore, calibratedScore, calibratedLaplaceScore, productsScore, extremeScore,
	fittedScore, lawScore, fractionScore, finenessScore, orderScore, formScore, totalScore, aggregateScore, exactScore,
}

// kind is what all scores of a kind have in common.
type kind struct {
	name  string                   // Event.Score
	make  func(slot int) statistic // returns a statistic that has learned nothing; slot is 0 for all kinds but slotScore
	where setting                  // an audit has the score in any of these settings

	single, several float64 // shares of the wealth at the start: where one value is audited, and otherwise; 0 = no bets
	texts           float64 // in place of single, where the value is not a number; 0 = single
	fewSlots        bool    // the score gets wealth only up to maxLearnedSlots slots
	chance          float64 // what the search among many questions adds to the squared gap in the past
	lent            float64 // in place of single or several, once a part of all wealth was lent to the score
	views           []event.View
	prior           prior

	keeps     bool // its past is kept; otherwise past scores are computed again from the past of the slots
	lopsided  bool // see table
	lowBits   bool // it reads the lowest bits of numbers
	looksBack bool // the score of a result depends on those of other results
	lifetime       // how long what was learned is used

	event   EventKind                               // of numbers of the score
	whole   bool                                    // every outcome is of this kind of event
	eventOf func(s *Series, set uint64) EventKind   // in place of both; may be nil
	column  bool                                    // the score is about the column of Series.Slot
	phrase  func(in *Input, e *Event) withheld.Text // an event in a sentence; nil for words by the kind of the event
	near    func(in *Input, e *Event) withheld.Text // the same for events of values alone; nil for their bins
	check   func(s *Series) bool                    // whether the table of a restored score is sound; may be nil
}

// statistic computes a score. What it computes follows from earlier pairs alone, so that every bet on it is
// predictable. Most statistics are a learner, a lender or a fitter as well; the joint scores are learned together, by
// learnJoint.
type statistic interface {
	// score returns the score of a result.
	score(r *Result) code.Code
	// words describes a set of the score's bins.
	words(in *Input, s *Series, set uint64) withheld.Text
	// state describes what was learned.
	state(c *state.Codec)
}

// newSeries returns a score of a kind that has learned nothing.
func newSeries(k *kind, slot int) *Series {
	return &Series{kind: k, Slot: slot, statistic: k.make(slot)}
}

// weight returns the share of the wealth that the scores of a kind start with.
func (k *kind) weight(several bool) float64 {
	if several {
		return k.several
	}
	return k.single
}

// lifetime limits how long what a score has learned is used: while the pairs are fewer than growth times those it was
// learned from. It needs at least the given numbers of pairs now and when it was learned. The zero value stands for a
// single block.
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
	learn(in *Input, s *Series)
}

// lender is a learner to whose score wealth is lent once the past shows enough.
type lender interface {
	// learnLent sets the table, and returns the part of all wealth that is lent to the score from now on, 0 for none.
	learnLent(in *Input, s *Series) float64
}

// weigher is a joint statistic of which it is known how much of it each slot is. Others are represented by naive Bayes.
type weigher interface {
	weights(in *Input) []float64 // per slot, not negative
}

// fitter is a statistic that is bet on only if the past shows a difference between the worlds.
type fitter interface {
	// fit learns from the kept pairs, at least leastJoint of them, and returns the scores of the past. It reports
	// whether these differ between the worlds.
	fit(in *Input, s *Series) (past [2][]code.Code, differ bool)
}

// sizer is a statistic that holds much memory.
type sizer interface {
	size() int // bytes
}

// silent is a statistic of which nothing is bet or said.
type silent struct{ memoryless }

func (silent) words(*Input, *Series, uint64) withheld.Text { return withheld.Text{} }

// memoryless is a statistic that keeps nothing of what it learns.
type memoryless struct{}

func (memoryless) state(*state.Codec) {}
