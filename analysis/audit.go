package analysis

import (
	"math"

	"github.com/dpwatch/dpwatch/analysis/internal/bins"
	"github.com/dpwatch/dpwatch/analysis/internal/book"
	"github.com/dpwatch/dpwatch/analysis/internal/code"
	"github.com/dpwatch/dpwatch/analysis/internal/eprocess"
	"github.com/dpwatch/dpwatch/analysis/internal/results"
	"github.com/dpwatch/dpwatch/analysis/internal/score"
	"github.com/dpwatch/dpwatch/internal/outcome"
)

// The values that go in, named here so that they can be built from outside this module's internals.
type (
	// Outcome is the result of one trial.
	Outcome = outcome.Outcome
	// Column describes one column of a result.
	Column = outcome.Column
	// Value is one field of one row.
	Value = outcome.Value
	// Kind is the kind of a value.
	Kind = outcome.Kind
)

// The kinds of a value.
const (
	Null   = outcome.Null
	Number = outcome.Number
	Text   = outcome.Text
	Bool   = outcome.Bool
)

// Audit gathers evidence about one query on one pair of neighbouring datasets. It is not safe for concurrent use.
type Audit struct {
	claim     Claim
	opts      Options
	threshold float64 // ln(1/alpha)

	pairs      int
	detectedAt int // pairs at which the bound passed the claim; 0 for not yet
	nextTurn   int // pairs at which the current block ends
	nextLook   int
	nextHold   int // pairs at which the next check is made whether a violation may be reported

	grid    []float64
	claimAt int  // index of the claim's point, -1 without a claim
	front   int  // index of the first point that is not rejected, as far as was climbed; all below are
	climbed int  // finished epochs that are in the climber
	drawn   int  // points of the path that have their bound
	due     bool // the front may have to move: a block has ended
	lead    book.Lead
	climber *book.Process // at grid[front], see climb
	book    book.Book
	epoch   *book.Epoch
	scratch bins.Scratch
	bet     book.Bet
	mix     score.Mixtures

	path        []PathPoint // at the ends of blocks
	scores      score.Set
	buckets     []slotEstimate // per slot; no part of the state
	certificate *certificate   // the event of the fixed budget, nil before half of it is used
	retained    []retained
	misfit      bool // a result did not fit the layout
	divideAt    int  // pairs at which wealth is divided among the scores again
	layoutAt    int  // pairs at which the layout may be learned again
	monotony    monotony
	failures    [2]int
	unmatched   int // results of another shape
	answers     answers
	growths     growths   // no part of the state
	first       suspected // of a confirmation
	measured    measured
	explained   explained // no part of the state
}

// New starts an audit of a claim. It returns an *InfeasibleError when the budget is too small for any method to convict
// the claim, and an error that names every fault for a claim or an option out of its range.
func New(c Claim, o Options) (*Audit, error) {
	o = o.withDefaults()
	if err := validate(c, o); err != nil {
		return nil, err
	}
	if o.NoClaim {
		c.Epsilon = 0
	} else if err := feasible(c, o); err != nil {
		return nil, err
	}
	a := &Audit{
		claim: c, opts: o, threshold: -math.Log(o.alpha()),
		scores: score.Set{Input: score.Input{Errors: code.NewDictionary(code.FirstError, code.OtherError), Stride: 1}},
		mix:    score.NewMixtures(o.NoClaim), nextTurn: 1, nextLook: 1, divideAt: score.FirstDivision,
	}
	a.grid, a.claimAt = eprocess.NewGrid(c.Epsilon, o.NoClaim)
	at := c.Epsilon
	if a.claimAt >= 0 {
		at = a.grid[a.claimAt]
	}
	a.lead.Null = eprocess.NewNull(at, c.Delta)
	a.climber = &book.Process{Null: eprocess.NewNull(a.grid[0], c.Delta), Below: a.claimAt > 0}
	a.open(&book.Epoch{})
	return a, nil
}

// Add adds one pair of trials: a fresh execution on D0 and one on D1. The caller may change their rows afterwards.
func (a *Audit) Add(d0, d1 Outcome) {
	h := [2]uint64{results.Fingerprint(&d0), results.Fingerprint(&d1)}
	// The first pair that differs still counts with the bets that were placed before it: bets that depended on it would
	// be unfair.
	varies := a.monotony.pairs >= frozenPairs && a.monotony.constant() && h != a.monotony.first
	a.pairs++
	a.answers = answers{}
	a.retain(&d0, &d1)
	a.monotony.add(h)
	a.countFailures(&d0, &d1)
	if a.scores.Reader != nil {
		a.read(&d0, &d1, h)
	}
	if !varies && (a.pairs >= a.nextLook || a.pairs >= a.nextTurn) {
		a.look()
	}
	if varies || a.pairs >= a.nextTurn {
		a.turn(varies)
		a.answers = answers{}
	}
}

// Decided reports whether further trials cannot change the verdict: a violation is certain, or the budget is used.
// During a measurement it reports whether the measurement has ended.
func (a *Audit) Decided() bool {
	if a.measuring() {
		return a.measured.steady == steadyLooks || a.pairs >= a.opts.MaxTrials
	}
	return a.detectedAt > 0 || a.pairs >= a.opts.MaxTrials || a.opts.Deterministic == DeterministicViolation && a.sameAnswer()
}

// Budget returns the budget in pairs.
func (a *Audit) Budget() int { return a.opts.MaxTrials }

// Pairs returns the number of pairs so far.
func (a *Audit) Pairs() int { return a.pairs }

// Exhausted reports whether the budget is used.
func (a *Audit) Exhausted() bool { return a.pairs >= a.opts.MaxTrials }

// Wealth returns the log of the wealth against the claim now, 0 without a claim. It changes nothing: Add, Report
// and Figures record a detection.
func (a *Audit) Wealth() float64 {
	if a.claimAt < 0 {
		return 0
	}
	return a.lead.Now(&a.book, a.epoch)
}

// DetectedAt returns the number of pairs at which the bound passed the claim, 0 for not yet.
func (a *Audit) DetectedAt() int { return a.detectedAt }

// read turns a pair into codes and counts them.
func (a *Audit) read(d0, d1 *Outcome, h [2]uint64) {
	p := &score.Pair{
		Results: [2]*Outcome{d0, d1}, Hashes: h, Number: a.pairs,
		Most: a.opts.MaxTrials + firstRetained + latestRetained, // retained pairs may be read twice
	}
	a.scores.Read(p)
	if a.certificate != nil {
		a.certificate.count(&a.scores.Now)
	}
	a.scores.Count(p)
}

func (a *Audit) countFailures(d0, d1 *Outcome) {
	for w, o := range [2]*Outcome{d0, d1} {
		if o.Failed() {
			a.failures[w]++
		}
	}
}

// monotony records whether the results of each world vary.
type monotony struct {
	pairs  int
	first  [2]uint64
	broken [2]bool
}

func (m *monotony) add(h [2]uint64) {
	m.pairs++
	if m.pairs == 1 {
		m.first = h
	}
	for w := range h {
		m.broken[w] = m.broken[w] || h[w] != m.first[w]
	}
}

// constant reports whether neither world's result ever varied.
func (m *monotony) constant() bool { return !m.broken[0] && !m.broken[1] }
