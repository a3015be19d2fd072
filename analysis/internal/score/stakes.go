package score

import (
	"math"

	"github.com/dpwatch/dpwatch/analysis/internal/book"
	"github.com/dpwatch/dpwatch/analysis/internal/code"
	"github.com/dpwatch/dpwatch/analysis/internal/eprocess"
	"github.com/dpwatch/dpwatch/analysis/internal/event"
)

// This file divides the wealth among the scores.

// prior names a mixture over effect sizes.
type prior uint8

const (
	ShiftPrior   prior = iota // for values that noise moves
	FittedPrior               // for likelihood ratios of fitted laws
	SupportPrior              // for outcomes that one world never has
	PairedPrior               // for worlds that share their noise
	LawPrior                  // for tables with laws
	WholePrior                // for answers that are compared whole
	priorCount
)

// Mixtures are the mixtures over effect sizes, by prior.
type Mixtures [priorCount]eprocess.Mixture

// NewMixtures returns the mixtures of an audit with or without a claim.
func NewMixtures(noClaim bool) Mixtures {
	x := eprocess.Excesses(noClaim)
	return Mixtures{eprocess.ShiftMixture(x), eprocess.FittedMixture(x), eprocess.SupportMixture(x), eprocess.PairedMixture(), eprocess.LawMixture(), eprocess.WholeMixture()}
}

// Settled is the number of pairs from which the layout changes only when results do not fit it.
const Settled = 32

// several reports whether there is more than one value to audit. A single value is audited by itself. With more slots,
// much of the wealth goes to the scores that combine all slots. The rest is kept for keys that come later.
func (in *Input) several() bool { return len(in.Slots) > 1 || in.Reader.Keyed }

// Fund gives wealth to the scores that have none yet.
func (set *Set) Fund(t *Turn) {
	e, several, numbers := t.Epoch, set.several(), set.specials.isNumber()
	left := 1.0
	give := func(s *Series, weight float64, views []event.View) {
		p := s.kind.prior
		if set.apart(s) {
			s.id, s.staked = t.Apart.Book.Open(views, t.Mixtures[p]), true
			t.Apart.Epoch.Grants = append(t.Apart.Epoch.Grants, book.Grant{Score: s.id, Fraction: .5})
			return
		}
		switch {
		case s.Shared:
			views, p = []event.View{event.Ascending}, PairedPrior
		case s.kind == slotScore && s.rare():
			p = SupportPrior
		}
		s.id, s.staked = t.Book.Open(views, t.Mixtures[p]), true
		e.Grants = append(e.Grants, book.Grant{Score: s.id, Fraction: weight / left})
		left -= weight
	}
	for _, s := range set.specials {
		switch k := s.kind; {
		case s.staked, k.weight(several) == 0, k.fewSlots && len(set.Slots) > maxLearnedSlots:
		case k.texts > 0 && !numbers:
			give(s, k.texts, k.views)
		default:
			give(s, k.weight(several), k.views)
		}
	}
	fresh := len(set.Slots) - set.Funded
	if fresh == 0 {
		return
	}
	part := .5 / float64(fresh) // of the cash, for keys that came later
	switch {
	case set.Funded == 0:
		if part = slotScore.weight(several) / float64(fresh); !several && !numbers { // with what scores of numbers would have
			part += (fittedScore.single + lawScore.single - lawScore.texts) / float64(fresh)
		}
	case t.Pairs <= Settled && 4*fresh > set.Funded:
		for _, s := range set.Slots[:set.Funded] { // too many for the wealth that is left: divide it again
			e.Retire = append(e.Retire, s.id)
			s.staked = false
		}
		part = .8 / float64(len(set.Slots))
	}
	views := set.slotViews()
	for _, s := range set.Slots {
		if !s.staked {
			give(s, part, views)
		}
	}
	set.Funded = len(set.Slots)
}

// manySlots is the number of slots up to which each has several views.
const manySlots = 64

// rare reports whether a slot's group was in at most a fifth of the kept results.
func (s *Series) rare() bool {
	there := 0
	for _, codes := range s.Past {
		for _, c := range codes {
			there += code.Bit(code.IsNumber(c) || code.CategoryOf(c) != code.Absent)
		}
	}
	return 5*there <= 2*len(s.Past[0])
}

// slotViews returns the views of a slot: fewer when there are many.
func (in *Input) slotViews() []event.View {
	switch {
	case len(in.Slots) <= FewSlots:
		return []event.View{event.Ascending, event.Folded, event.Sorted}
	case len(in.Slots) <= manySlots:
		return []event.View{event.Ascending, event.Sorted}
	}
	return []event.View{event.Ascending}
}

// FirstDivision is the number of pairs at which the wealth is first divided among the scores by what the past shows.
const FirstDivision = 32

// NextDivision returns the number of pairs at which wealth that is divided now is divided again: whenever the pairs
// have doubled, and where many slots share it, whenever they have grown by half.
func (set *Set) NextDivision(pairs int) int {
	if len(set.Slots) > manySlots {
		return pairs + pairs/2
	}
	return 2 * pairs
}

// SlotShare is the share of the wealth that all slots start with, if there are several.
func SlotShare() float64 { return slotScore.several }

// Retire takes the wealth from all scores.
func (set *Set) Retire(e, apart *book.Epoch) {
	for _, s := range set.All() {
		switch {
		case !s.staked:
		case set.apart(s):
			apart.Retire = append(apart.Retire, s.id)
		default:
			e.Retire = append(e.Retire, s.id)
		}
	}
}

// Divide moves wealth to the scores whose past gives the strongest evidence against the claim. A quarter of the wealth
// keeps the weights that the scores began with. The rest is divided by these weights times exp(z^2/2), with z the
// studentised gap of a score's events in the past: as if the score had been chosen from the past, like its events. The
// division depends on the past alone, so that every process stays an e-process.
func (set *Set) Divide(t *Turn) {
	e := t.Epoch
	weight := func(s *Series) float64 {
		if t := s.Table; s.kind.lent > 0 && t != nil && (t.Laws != nil || s.kind == exactScore) { // a score that was lent wealth keeps it
			return s.kind.lent
		}
		return s.kind.weight(set.several())
	}
	var logs, prior []float64
	bets := make(map[book.ScoreID]bool, len(e.Entries))
	for _, en := range e.Entries {
		s := set.Named(en.Score)
		bets[s.id] = true
		if en.Table.Paired != nil {
			continue
		}
		p := weight(s)
		if s.kind == slotScore {
			p /= float64(len(set.Slots))
		}
		e.Shift = append(e.Shift, book.Grant{Score: en.Score})
		prior = append(prior, p)
		logs = append(logs, math.Log(p)+max(0, event.Strength(set.null, en.Table, &set.order)-s.kind.chance)/2)
	}
	for _, s := range set.specials {
		if s.staked && !set.apart(s) && !bets[s.id] {
			e.Shift = append(e.Shift, book.Grant{Score: s.id})
			prior = append(prior, weight(s))
			logs = append(logs, math.Inf(-1))
		}
	}
	all, sum := eprocess.LogSumExp(logs), 0.0
	if math.IsInf(all, -1) { // nothing is bet on
		e.Shift = nil
		return
	}
	for _, p := range prior {
		sum += p
	}
	e.At = t.Null.Epsilon
	for i := range e.Shift {
		e.Priors = append(e.Priors, prior[i]/sum)
		e.Shift[i].Fraction = .25*prior[i]/sum + .75*math.Exp(logs[i]-all)
	}
}
