package analysis

import (
	"math"
	"slices"
	"unsafe"

	"github.com/dpwatch/dpwatch/analysis/internal/eprocess"
	"github.com/dpwatch/dpwatch/analysis/internal/event"
)

// scoreID numbers the scores of an audit in the order in which they were made.
type scoreID int

// stake is what the book knows of a score: the views of it that are bet on, the mixture of each, and where their
// wealth lies.
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

// grant gives a score a part of the wealth that is not bet.
type grant struct {
	score    scoreID
	fraction float64
}

// entry is what one score bets on in an epoch.
type entry struct {
	score scoreID
	table *event.Table
	scope scope
}

// scope says at which epsilons a score is bet on. Elsewhere its wealth rests.
type scope uint8

const (
	everywhere scope = iota
	fromClaim        // at the claim and above
	claimAlone
)

// epoch is a block of pairs between two moments of learning. What is bet in it at any epsilon follows from the
// past counts in its tables alone, so that a process may be computed when it is wanted.
type epoch struct {
	retire  []scoreID // their wealth becomes cash
	void    bool      // what was won so far is given up: it rested on an assumption that broke
	anew    bool      // a confirmation begins: the wealth is 1, in the proportions at hand
	grants  []grant   // from the cash, in order
	priors  []float64 // the fractions by the weights that the scores began with
	at      float64   // the epsilon of the fractions
	lend    []grant   // every other score lends these its fraction
	shift   []grant   // these scores' wealth is divided among them anew, in the given fractions
	share   float64   // the part of each score's wealth that is spread over its components anew afterwards
	entries []entry
	opened  float64 // ln of the wealth at the claim at the start
	claim   float64 // and at the end, minus infinity without one
}

// book keeps the stakes and the epochs of an audit.
type book struct {
	stakes []stake
	places int
	epochs []*epoch
	order  []uint8 // scratch
}

// open adds a score and returns its number.
func (k *book) open(views []event.View, m eprocess.Mixture) scoreID {
	k.stakes = append(k.stakes, stake{views: views, mix: m, at: k.places})
	k.places += len(views) * len(m)
	return scoreID(len(k.stakes) - 1)
}

// process is the e-process at one epsilon: a weighted average of products, kept as logarithms.
type process struct {
	eprocess.Null
	below   bool      // below the claim
	logw    []float64 // per place
	sums    []float64 // per score: ln of its wealth
	cash    float64   // ln of the wealth that is not bet
	highest float64   // the greatest log-wealth at any look
}

// reset puts the process back to the start.
func (p *process) reset(h eprocess.Null, below bool) {
	p.Null, p.below, p.logw, p.sums, p.cash, p.highest = h, below, p.logw[:0], p.sums[:0], 0, 0
}

// begin applies the transfers of wealth at the start of an epoch. They are decided by the past, the same for
// every epsilon, and keep the total.
func (p *process) begin(k *book, e *epoch) {
	for len(p.logw) < k.places {
		p.logw = append(p.logw, math.Inf(-1))
	}
	for len(p.sums) < len(k.stakes) {
		p.sums = append(p.sums, math.Inf(-1))
	}
	if all := p.total(); e.void && all > 0 {
		p.scale(-all)
	}
	for _, id := range e.retire {
		p.cash = eprocess.LogAdd(p.cash, p.sums[id])
		p.empty(k, id)
	}
	for _, g := range e.grants {
		p.spread(k, g.score, p.cash+math.Log(g.fraction))
		p.cash += math.Log1p(-g.fraction)
	}
	for _, g := range e.lend {
		p.lend(k, g)
	}
	p.divide(k, p.shares(k, e))
	if e.anew {
		p.renew()
	}
}

// lend moves a fraction of all wealth to a score.
func (p *process) lend(k *book, g grant) {
	all := p.total()
	if !(all > math.Inf(-1)) {
		return
	}
	p.scale(math.Log1p(-g.fraction))
	p.spread(k, g.score, all+math.Log(g.fraction))
}

// shares returns how the wealth of the scores is divided anew: at the claim as the epoch says, elsewhere by what the past says
// against this epsilon, unless these are too many scores.
func (p *process) shares(k *book, e *epoch) []grant {
	if len(e.shift) == 0 || len(e.shift) > maxOwnShares || p.Epsilon == e.at {
		return e.shift
	}
	tables := make(map[scoreID]*event.Table, len(e.entries))
	for _, en := range e.entries {
		tables[en.score] = en.table
	}
	loud := make([]float64, len(e.shift))
	for i, g := range e.shift {
		loud[i] = math.Inf(-1)
		if t := tables[g.score]; t != nil {
			loud[i] = math.Log(e.priors[i]) + event.Loudness(p.Null, t, &k.order)/2
		}
	}
	all := eprocess.LogSumExp(loud)
	if math.IsInf(all, -1) {
		return e.shift
	}
	own := make([]grant, len(e.shift))
	for i, g := range e.shift {
		own[i] = grant{g.score, .25*e.priors[i] + .75*math.Exp(loud[i]-all)}
	}
	return own
}

const maxOwnShares = 32

// divide gives each score its fraction of what they have together, and leaves the proportions within each.
func (p *process) divide(k *book, shares []grant) {
	all := math.Inf(-1)
	for _, g := range shares {
		all = eprocess.LogAdd(all, p.sums[g.score])
	}
	if math.IsInf(all, -1) {
		return
	}
	for _, g := range shares {
		w := p.of(k, g.score)
		own, due := p.sums[g.score], all+math.Log(g.fraction)
		if !(own > math.Inf(-1)) {
			p.empty(k, g.score)
			p.spread(k, g.score, due)
			continue
		}
		for i := range w {
			w[i] += due - own
		}
		p.sums[g.score] = due
	}
}

// spread adds wealth to a score by the prior of its components.
func (p *process) spread(k *book, id scoreID, wealth float64) {
	s := &k.stakes[id]
	w := p.of(k, id)
	for i := range w {
		w[i] = eprocess.LogAdd(w[i], wealth+math.Log(s.prior(i)))
	}
	p.sums[id] = eprocess.LogAdd(p.sums[id], wealth)
}

// empty takes all wealth from a score.
func (p *process) empty(k *book, id scoreID) {
	w := p.of(k, id)
	for i := range w {
		w[i] = math.Inf(-1)
	}
	p.sums[id] = math.Inf(-1)
}

func (p *process) scale(by float64) {
	p.cash += by
	for i := range p.logw {
		p.logw[i] += by
	}
	for i := range p.sums {
		p.sums[i] += by
	}
}

func (p *process) of(k *book, id scoreID) []float64 {
	s := &k.stakes[id]
	return p.logw[s.at : s.at+s.size()]
}

func (p *process) total() float64 { return eprocess.LogAdd(p.cash, eprocess.LogSumExp(p.sums)) }

// end applies what the bets of an epoch gained, and shares. Below the claim, what is not bet follows the wealth at the claim: a null
// there is part of the null at the claim.
func (p *process) end(k *book, e *epoch, scratch *bet) {
	rest := 0.0
	if gain := e.claim - e.opened; p.below && gain > math.Inf(-1) { // or it is no number
		rest = gain
		p.scale(rest)
	}
	for _, en := range e.entries {
		if en.scope == claimAlone || en.scope == fromClaim && p.below {
			continue
		}
		s := &k.stakes[en.score]
		w := p.of(k, en.score)
		for i := range w {
			w[i] -= rest
		}
		for v := range s.views {
			scratch.place(p.Null, en, s, v, k)
			scratch.collect(en.table, w[v*len(s.mix):(v+1)*len(s.mix)])
		}
		s.shareOut(w, e.share)
		p.sums[en.score] = eprocess.LogSumExp(w)
	}
	p.note(e.claim)
}

// note takes notice of the wealth. A null below the claim is part of the null at the claim, so that the process at the
// claim is an e-process for it too, and so is the average of both.
func (p *process) note(claim float64) {
	w := p.total()
	if p.below {
		w = eprocess.LogAdd(w, claim) - math.Ln2
	}
	if w > p.highest {
		p.highest = w
	}
}

// collect adds the gains of a bet over the counts of its table's block.
func (b *bet) collect(t *event.Table, w []float64) {
	if t.Paired != nil {
		for i := range w {
			w[i] += t.Paired.Gain(b.null, b.mix[i])
		}
		return
	}
	if t.Laws != nil {
		w[0] += event.GainOf(b.odds, t.During)
		return
	}
	k0, k1 := b.events.ClassCounts(t.During[0]), b.events.ClassCounts(t.During[1])
	for i := range w {
		w[i] += b.factors[i].Gain(k0, k1)
	}
}

// shareOut spreads a part of a score's wealth over its components by their prior (Herbster and Warmuth 1998,
// fixed share): a component that lost while little was known may come back when more is.
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

// renew sets the wealth to 1 and leaves the proportions of its parts.
func (p *process) renew() {
	if all := p.total(); !math.IsInf(all, 0) {
		p.scale(-all)
	}
	p.highest = 0
}

// clone returns a copy that shares nothing with the process.
func (p *process) clone() *process {
	c := *p
	c.logw, c.sums = slices.Clone(p.logw), slices.Clone(p.sums)
	return &c
}

// size returns about how many bytes of memory the lists of the process take.
func (p *process) size() int { return 8 * (cap(p.logw) + cap(p.sums)) }

// size returns about how many bytes of memory the epoch takes, without its tables.
func (e *epoch) size() int {
	return int(unsafe.Sizeof(epoch{})) + int(unsafe.Sizeof(entry{}))*cap(e.entries) +
		int(unsafe.Sizeof(grant{}))*(cap(e.grants)+cap(e.lend)+cap(e.shift)) + 8*(cap(e.priors)+cap(e.retire))
}

// scores returns how many scores were opened.
func (k *book) scores() int { return len(k.stakes) }

// size returns about how many bytes of memory the stakes take.
func (k *book) size() int { return int(unsafe.Sizeof(stake{})) * cap(k.stakes) }

// remixed returns a book with the same views and epochs, and with other mixtures.
func (k *book) remixed(mix func(eprocess.Mixture) eprocess.Mixture) *book {
	other := &book{epochs: k.epochs}
	for _, s := range k.stakes {
		other.open(s.views, mix(s.mix))
	}
	return other
}
