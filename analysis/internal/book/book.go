package book

import (
	"math"
	"slices"
	"unsafe"

	"github.com/dpwatch/dpwatch/analysis/internal/eprocess"
	"github.com/dpwatch/dpwatch/analysis/internal/event"
)

// ScoreID numbers the scores of an audit in the order in which they were made.
type ScoreID int

// stake is a score in the book: its views that are bet on, the mixture of each, and the places of their wealth.
type stake struct {
	views []event.View
	mix   eprocess.Mixture
	at    int // first of len(views)*len(mix) places
}

// firstView is the share of the first of several views.
const firstView = .85

// prior returns the weight of a place.
func (s *stake) prior(i int) float64 {
	w := s.mix[i%len(s.mix)].Weight
	switch n := len(s.views); {
	case n == 1:
		return w
	case i < len(s.mix):
		return w * firstView
	default:
		return w * (1 - firstView) / float64(n-1)
	}
}

func (s *stake) size() int { return len(s.views) * len(s.mix) }

// Grant gives a score a part of the wealth that is not bet.
type Grant struct {
	Score    ScoreID
	Fraction float64
}

// Entry is what one score bets on in an epoch.
type Entry struct {
	Score ScoreID
	Table *event.Table
	Scope Scope
}

// Scope is the set of epsilons at which a score is bet on. Elsewhere its wealth is not bet.
type Scope uint8

// The scopes of a score.
const (
	Everywhere Scope = iota // at every epsilon
	FromClaim               // at the claim and above
	ClaimAlone              // at the claim only
)

// Epoch is a block of pairs between two moments of learning. The bets at any epsilon follow from the past counts in its
// tables alone, so that a process can be computed later.
type Epoch struct {
	Retire []ScoreID // their wealth becomes cash
	// DiscardGains: if the wealth is more than 1 it becomes 1, because the gains relied on an assumption that does not
	// hold.
	DiscardGains bool
	// Restart: a confirmation begins. The wealth becomes 1; the proportions of its parts remain.
	Restart bool
	Grants  []Grant   // from the cash, in order
	Priors  []float64 // the fractions by the weights that the scores began with
	At      float64   // the epsilon of the fractions
	Lend    []Grant   // every other score lends these its fraction
	Shift   []Grant   // these scores' wealth is divided among them again, in the given fractions
	Share   float64   // the part of each score's wealth that is spread over its components again afterwards
	Entries []Entry
	Opened  float64 // ln of the wealth at the claim at the start
	Claim   float64 // and at the end, minus infinity without one
	Sides   []Side  // the same of the other points of a claim that is a curve
}

// Side is the ln of the wealth at a point of a curve at the start and at the end of an epoch.
type Side struct{ Opened, Claim float64 }

// Book keeps the stakes and the epochs of an audit.
type Book struct {
	stakes []stake
	Places int
	Epochs []*Epoch
	Order  []uint8 // scratch
}

// Open adds a score and returns its number.
func (k *Book) Open(views []event.View, m eprocess.Mixture) ScoreID {
	k.stakes = append(k.stakes, stake{views: views, mix: m, at: k.Places})
	k.Places += len(views) * len(m)
	return ScoreID(len(k.stakes) - 1)
}

// Process is the e-process at one epsilon: a weighted average of products, kept as logarithms.
type Process struct {
	eprocess.Null
	Below   bool      // below the claim
	Logw    []float64 // per place
	sums    []float64 // per score: ln of its wealth
	cash    float64   // ln of the wealth that is not bet
	Highest float64   // the greatest log-wealth at any look
}

// Reset puts the process back to the start.
func (p *Process) Reset(h eprocess.Null, below bool) {
	p.Null, p.Below, p.Logw, p.sums, p.cash, p.Highest = h, below, p.Logw[:0], p.sums[:0], 0, 0
}

// Begin applies the transfers of wealth at the start of an epoch. They are decided by the past, the same for
// every epsilon, and keep the total.
func (p *Process) Begin(k *Book, e *Epoch) {
	for len(p.Logw) < k.Places {
		p.Logw = append(p.Logw, math.Inf(-1))
	}
	for len(p.sums) < len(k.stakes) {
		p.sums = append(p.sums, math.Inf(-1))
	}
	if all := p.Total(); e.DiscardGains && all > 0 {
		p.scale(-all)
	}
	for _, id := range e.Retire {
		p.cash = eprocess.LogAdd(p.cash, p.sums[id])
		p.empty(k, id)
	}
	for _, g := range e.Grants {
		p.spread(k, g.Score, p.cash+math.Log(g.Fraction))
		p.cash += math.Log1p(-g.Fraction)
	}
	for _, g := range e.Lend {
		p.lend(k, g)
	}
	p.divide(k, p.shares(k, e))
	if e.Restart {
		p.Renew()
	}
}

// lend moves a fraction of all wealth to a score.
func (p *Process) lend(k *Book, g Grant) {
	all := p.Total()
	if !(all > math.Inf(-1)) {
		return
	}
	p.scale(math.Log1p(-g.Fraction))
	p.spread(k, g.Score, all+math.Log(g.Fraction))
}

// shares returns the fractions by which the wealth of the scores is divided again: at the claim those of the epoch,
// elsewhere those that follow from the past evidence against this epsilon, unless there are too many scores.
func (p *Process) shares(k *Book, e *Epoch) []Grant {
	if len(e.Shift) == 0 || len(e.Shift) > maxOwnShares || p.Epsilon == e.At {
		return e.Shift
	}
	tables := make(map[ScoreID]*event.Table, len(e.Entries))
	for _, en := range e.Entries {
		tables[en.Score] = en.Table
	}
	logs := make([]float64, len(e.Shift))
	for i, g := range e.Shift {
		logs[i] = math.Inf(-1)
		if t := tables[g.Score]; t != nil {
			logs[i] = math.Log(e.Priors[i]) + event.Strength(p.Null, t, &k.Order)/2
		}
	}
	all := eprocess.LogSumExp(logs)
	if math.IsInf(all, -1) {
		return e.Shift
	}
	own := make([]Grant, len(e.Shift))
	for i, g := range e.Shift {
		own[i] = Grant{g.Score, .25*e.Priors[i] + .75*math.Exp(logs[i]-all)}
	}
	return own
}

const maxOwnShares = 32

// divide gives each score its fraction of what they have together, and leaves the proportions within each.
func (p *Process) divide(k *Book, shares []Grant) {
	all := math.Inf(-1)
	for _, g := range shares {
		all = eprocess.LogAdd(all, p.sums[g.Score])
	}
	if math.IsInf(all, -1) {
		return
	}
	for _, g := range shares {
		w := p.of(k, g.Score)
		own, due := p.sums[g.Score], all+math.Log(g.Fraction)
		if !(own > math.Inf(-1)) {
			p.empty(k, g.Score)
			p.spread(k, g.Score, due)
			continue
		}
		for i := range w {
			w[i] += due - own
		}
		p.sums[g.Score] = due
	}
}

// spread adds wealth to a score by the prior of its components.
func (p *Process) spread(k *Book, id ScoreID, wealth float64) {
	s := &k.stakes[id]
	w := p.of(k, id)
	for i := range w {
		w[i] = eprocess.LogAdd(w[i], wealth+math.Log(s.prior(i)))
	}
	p.sums[id] = eprocess.LogAdd(p.sums[id], wealth)
}

// empty takes all wealth from a score.
func (p *Process) empty(k *Book, id ScoreID) {
	w := p.of(k, id)
	for i := range w {
		w[i] = math.Inf(-1)
	}
	p.sums[id] = math.Inf(-1)
}

func (p *Process) scale(by float64) {
	p.cash += by
	for i := range p.Logw {
		p.Logw[i] += by
	}
	for i := range p.sums {
		p.sums[i] += by
	}
}

func (p *Process) of(k *Book, id ScoreID) []float64 {
	s := &k.stakes[id]
	return p.Logw[s.at : s.at+s.size()]
}

// Total returns the log of the whole wealth.
func (p *Process) Total() float64 { return eprocess.LogAdd(p.cash, eprocess.LogSumExp(p.sums)) }

// End applies what the bets of an epoch gained, and shares. Below the claim, what is not bet follows the wealth at the
// claim: a null there is part of the null at the claim.
func (p *Process) End(k *Book, e *Epoch, scratch *Bet) {
	rest := 0.0
	if gain := e.Claim - e.Opened; p.Below && gain > math.Inf(-1) { // or it is NaN
		rest = gain
		p.scale(rest)
	}
	for _, en := range e.Entries {
		if en.Scope == ClaimAlone || en.Scope == FromClaim && p.Below {
			continue
		}
		s := &k.stakes[en.Score]
		w := p.of(k, en.Score)
		for i := range w {
			w[i] -= rest
		}
		for v := range s.views {
			scratch.place(p.Null, en, s, v, k)
			scratch.collect(en.Table, w[v*len(s.mix):(v+1)*len(s.mix)])
		}
		s.shareOut(w, e.Share)
		p.sums[en.Score] = eprocess.LogSumExp(w)
	}
	p.note(e.Claim)
}

// note updates the highest wealth. A null below the claim is part of the null at the claim, so that the process at the
// claim is an e-process for it too, and so is the average of both.
func (p *Process) note(claim float64) {
	w := p.Total()
	if p.Below {
		w = eprocess.LogAdd(w, claim) - math.Ln2
	}
	if w > p.Highest {
		p.Highest = w
	}
}

// collect adds the gains of a bet over the counts of its table's block.
func (b *Bet) collect(t *event.Table, w []float64) {
	if t.Paired != nil {
		for i := range w {
			w[i] += t.Paired.Gain(b.null, b.mix[i])
		}
		return
	}
	if t.Laws != nil {
		w[0] += event.GainOf(b.Odds, t.During)
		return
	}
	k0, k1 := b.events.ClassCounts(t.During[0]), b.events.ClassCounts(t.During[1])
	for i := range w {
		w[i] += b.Factors[i].Gain(k0, k1)
	}
}

// shareOut spreads a part of a score's wealth over its components by their prior (Herbster and Warmuth 1998,
// fixed share): a component that lost in the first blocks can recover later.
func (s *stake) shareOut(w []float64, part float64) {
	if part <= 0 {
		return
	}
	all := eprocess.LogSumExp(w)
	if math.IsInf(all, -1) {
		return
	}
	for i := range w {
		prior := s.prior(i)
		w[i] = all + math.Log((1-part)*math.Exp(w[i]-all)+part*prior)
	}
}

// Renew sets the wealth to 1 and leaves the proportions of its parts.
func (p *Process) Renew() {
	if all := p.Total(); !math.IsInf(all, 0) {
		p.scale(-all)
	}
	p.Highest = 0
}

// Clone returns a copy that shares nothing with the process.
func (p *Process) Clone() *Process {
	c := *p
	c.Logw, c.sums = slices.Clone(p.Logw), slices.Clone(p.sums)
	return &c
}

// Size returns about how many bytes of memory the lists of the process take.
func (p *Process) Size() int { return 8 * (cap(p.Logw) + cap(p.sums)) }

// Size returns about how many bytes of memory the epoch takes, without its tables.
func (e *Epoch) Size() int {
	return int(unsafe.Sizeof(Epoch{})) + int(unsafe.Sizeof(Entry{}))*cap(e.Entries) +
		int(unsafe.Sizeof(Grant{}))*(cap(e.Grants)+cap(e.Lend)+cap(e.Shift)) + 8*(cap(e.Priors)+cap(e.Retire)+2*cap(e.Sides))
}

// Scores returns how many scores were opened.
func (k *Book) Scores() int { return len(k.stakes) }

// Size returns about how many bytes of memory the stakes take.
func (k *Book) Size() int { return int(unsafe.Sizeof(stake{})) * cap(k.stakes) }
