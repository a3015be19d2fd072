package analysis

import (
	"math"

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
	nextTurn   int // pairs at which the block at hand ends
	nextLook   int
	nextHold   int // pairs at which it is looked again whether a violation may be reported

	grid    []float64
	claimAt int  // index of the claim's point, -1 without a claim
	front   int  // index of the first point that is not rejected, as far as was climbed; all below are
	climbed int  // finished epochs that are in the climber
	drawn   int  // points of the path that have their bound
	due     bool // the front may have to move: a block has ended
	lead    lead
	climber *process // at grid[front], see climb
	book    book
	epoch   *epoch
	scratch scratch
	bet     bet
	mix     mixtures

	path         []PathPoint // at the ends of blocks
	reader       *reader
	errors       *dictionary
	codes        [2][]code
	slots        []*series
	specials     []*series
	joint        joint
	fitted       fitted
	contrast     combination
	discriminant discriminant
	fraction     fraction
	learned      learned
	fineness     fineness
	products     products
	extreme      extreme
	beyond       beyond
	order        rowOrder
	standard     standard
	certificate  *certificate // the event of the fixed budget, nil before half of it is used
	jointNow     [2]code      // the Gaussian scores of the pair at hand
	laplaceNow   [2]code      // the Laplace scores
	ratioNow     [2]code      // the learned ratios of the pair at hand
	recalled     [2]recalled  // what the pair at hand repeats
	stride       int          // of the pairs that are kept
	retained     []retained
	ranks        [2]ranked // of the only slot's past, for fitted laws
	misfit       bool      // a result did not fit the layout
	divideAt     int       // pairs at which wealth is divided among the scores anew
	layoutAt     int       // pairs at which the layout is looked at again
	funded       int       // slots that had a stake when wealth was shared out last
	monotony     monotony
	repeats      repeats
	failures     [2]int
	unmatched    int // results of another shape
	answers      answers
	growths      growths   // no part of the state
	first        suspected // of a confirmation
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
		claim: c, opts: o, threshold: -math.Log(1 - o.Confidence),
		errors: newDictionary(firstError, otherError),
		mix:    newMixtures(o.NoClaim), stride: 1, nextTurn: 1, nextLook: 1, divideAt: firstDivision,
	}
	a.grid, a.claimAt = newGrid(c.Epsilon, o.NoClaim)
	at := c.Epsilon
	if a.claimAt >= 0 {
		at = a.grid[a.claimAt]
	}
	a.lead.null = newNull(at, c.Delta)
	a.climber = &process{null: newNull(a.grid[0], c.Delta), below: a.claimAt > 0}
	a.open(&epoch{})
	return a, nil
}

// Add takes one pair of trials: a fresh execution on D0 and one on D1. Their rows may be changed afterwards.
func (a *Audit) Add(d0, d1 Outcome) {
	h := [2]uint64{fingerprint(&d0), fingerprint(&d1)}
	// The first pair that differs still counts with the bets that were placed before it: bets that know that it differs are no
	// fair ones.
	varies := a.monotony.pairs >= frozenPairs && a.monotony.constant() && h != a.monotony.first
	a.pairs++
	a.answers = answers{}
	a.retain(&d0, &d1)
	a.monotony.add(h)
	a.countFailures(&d0, &d1)
	if a.reader != nil {
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
func (a *Audit) Decided() bool {
	return a.detectedAt > 0 || a.pairs >= a.opts.MaxTrials || a.opts.Deterministic == DeterministicViolation && a.sameAnswer()
}

// DetectedAt returns the number of pairs at which the bound passed the claim, 0 for not yet.
func (a *Audit) DetectedAt() int { return a.detectedAt }

// read turns a pair into codes and counts them.
func (a *Audit) read(d0, d1 *Outcome, h [2]uint64) {
	r := a.reader
	for w, o := range [2]*Outcome{d0, d1} {
		a.codes[w] = r.read(o, a.codes[w])
		a.order.now[w] = append(a.order.now[w][:0], r.order...)
	}
	for len(a.codes[0]) < len(a.codes[1]) {
		a.codes[0] = append(a.codes[0], r.filling(d0))
	}
	a.growSlots()
	if a.certificate != nil {
		a.certificate.count(a, [2]*Outcome{d0, d1})
	}
	kept := a.pairs%a.stride == 0
	room := min(a.keep(), (a.opts.MaxTrials+firstRetained+latestRetained)/a.stride) // retained pairs may be read twice
	for i, s := range a.slots {
		c0, c1 := a.codes[0][i], a.codes[1][i]
		s.count(c0, c1)
		if kept {
			s.reserve(room)
			s.push(c0, c1)
		}
		s.independence.add(c0, c1)
		if !s.shared && s.watch.add(c0, c1) {
			s.shared = true
		}
	}
	if s := a.ofKind(orderScore); s != nil {
		a.order.add()
		a.order.watch(&s.independence)
	}
	for w, x := range h {
		a.recalled[w] = a.repeats.recall(x)
	}
	for _, s := range a.specials {
		c0, c1 := a.special(s, d0, d1)
		s.count(c0, c1)
		if kept && !s.kind.derived() {
			s.push(c0, c1)
		}
	}
	if len(a.slots) == 1 {
		a.beyond.add(a.codes[0][0], a.codes[1][0])
	}
	for w, x := range h {
		a.repeats.add(w, x, numeric(a.codes[w]))
	}
	for kept && len(a.specials[0].past[0]) >= a.keep() {
		a.thin()
	}
}

// special returns the codes of a score that is not a slot.
func (a *Audit) special(s *series, d0, d1 *Outcome) (c0, c1 code) {
	switch s.kind {
	case rowsScore, seldomScore:
		return a.reader.rowsCode(d0), a.reader.rowsCode(d1)
	case repeatScore:
		return a.recalled[0].world, a.recalled[1].world
	case revealScore:
		if c0, c1 = a.recalled[0].rare, a.recalled[1].rare; len(a.slots) == 1 {
			return a.beyond.outside(a.codes[0][0], c0), a.beyond.outside(a.codes[1][0], c1)
		}
		return c0, c1
	case lowBitScore:
		return lowBitCode(a.codes[0]), lowBitCode(a.codes[1])
	case laplaceScore: // comes before gaussScore
		if s.table != nil {
			c0, a.jointNow[0] = a.joint.score(a.codes[0])
			c1, a.jointNow[1] = a.joint.score(a.codes[1])
			a.laplaceNow = [2]code{c0, c1}
		}
	case gaussScore:
		return a.jointNow[0], a.jointNow[1]
	case fittedScore:
		if s.table != nil {
			return a.fitted.score(a.codes[0][0]), a.fitted.score(a.codes[1][0])
		}
	case lawScore:
		return a.codes[0][0], a.codes[1][0]
	case contrastScore:
		if s.table != nil {
			return a.contrast.ofResult(a.codes[0]), a.contrast.ofResult(a.codes[1])
		}
	case discriminantScore:
		if s.table != nil {
			m := &a.discriminant.direction
			return m.ofResult(a.codes[0]), m.ofResult(a.codes[1])
		}
	case ratioScore: // comes before calibratedScore
		if s.table != nil {
			a.ratioNow = [2]code{a.learned.ofResult(a.codes[0]), a.learned.ofResult(a.codes[1])}
			return a.ratioNow[0], a.ratioNow[1]
		}
	case calibratedLaplaceScore:
		return a.laplaceNow[0], a.laplaceNow[1]
	case calibratedScore:
		return a.ratioNow[0], a.ratioNow[1]
	case finenessScore:
		if s.table != nil {
			return a.fineness.ofResult(a.codes[0]), a.fineness.ofResult(a.codes[1])
		}
	case productsScore:
		if s.table != nil {
			return a.products.ofResult(a.codes[0]), a.products.ofResult(a.codes[1])
		}
	case extremeScore:
		if s.table != nil {
			return a.extreme.ofResult(a.codes[0]), a.extreme.ofResult(a.codes[1])
		}
	case beyondScore:
		return a.beyond.code(a.codes[0][0], a.recalled[0].world), a.beyond.code(a.codes[1][0], a.recalled[1].world)
	case orderScore:
		if s.table != nil {
			return a.order.score(a.order.now[0]), a.order.score(a.order.now[1])
		}
	case fractionScore:
		if s.table != nil {
			return a.fraction.ofResult(a.codes[0]), a.fraction.ofResult(a.codes[1])
		}
	}
	return c0, c1
}

// lowBitCode is the least of the lowest bits set in the numbers of a result.
func lowBitCode(codes []code) code {
	least := math.Inf(1)
	for _, c := range codes {
		if isNumber(c) {
			least = min(least, lowestBit(c))
		}
	}
	if math.IsInf(least, 1) {
		return category(absent)
	}
	return least
}

// growSlots makes series for keys that came for the first time. Before, they were absent.
func (a *Audit) growSlots() {
	for len(a.slots) < len(a.codes[0]) {
		s := &series{kind: slotScore, slot: len(a.slots)}
		for w := range s.past {
			s.past[w] = make([]code, len(a.specials[0].past[w]), 2*len(a.specials[0].past[w])+8)
			for i := range s.past[w] {
				s.past[w][i] = category(absent)
			}
		}
		a.slots = append(a.slots, s)
	}
}

// Bounds on the past that is kept for learning.
const (
	maxKeptCells = 1 << 21 // pairs times slots: 32 MiB of codes
	maxKeptPairs = 1 << 17
	minKeptPairs = 256
)

// keep is the number of pairs at which the kept past is thinned.
func (a *Audit) keep() int {
	return min(max(maxKeptCells/max(1, len(a.slots)), minKeptPairs), maxKeptPairs)
}

// thin drops half of the kept pairs, so that memory stays bounded.
func (a *Audit) thin() {
	a.stride *= 2
	for _, s := range a.slots {
		s.thin()
	}
	for _, s := range a.specials {
		s.thin()
	}
}

func (a *Audit) countFailures(d0, d1 *Outcome) {
	for w, o := range [2]*Outcome{d0, d1} {
		if o.Failed() {
			a.failures[w]++
		}
	}
}

// numeric reports whether a number is among codes.
func numeric(codes []code) bool {
	for _, c := range codes {
		if isNumber(c) {
			return true
		}
	}
	return false
}

// monotony watches for results that never vary.
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
