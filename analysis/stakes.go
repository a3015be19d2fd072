package analysis

import (
	"math"

	"github.com/dpwatch/dpwatch/analysis/internal/book"
	"github.com/dpwatch/dpwatch/analysis/internal/code"
	"github.com/dpwatch/dpwatch/analysis/internal/eprocess"
	"github.com/dpwatch/dpwatch/analysis/internal/event"
	"github.com/dpwatch/dpwatch/analysis/internal/results"
)

// This file chooses the layout by which results are read, and divides the wealth among the scores.

// prior names a mixture over effect sizes.
type prior uint8

const (
	shiftPrior   prior = iota // for values that noise moves
	fittedPrior               // for likelihood ratios of fitted laws
	supportPrior              // for outcomes that one world never has
	pairedPrior               // for worlds that share their noise
	lawPrior                  // for tables with laws
	priorCount
)

type mixtures [priorCount]eprocess.Mixture

func newMixtures(noClaim bool) mixtures {
	x := eprocess.Excesses(noClaim)
	return mixtures{eprocess.ShiftMixture(x), eprocess.FittedMixture(x), eprocess.SupportMixture(x), eprocess.PairedMixture(), eprocess.LawMixture()}
}

// settled is the number of pairs from which the layout changes only when results do not fit it.
const settled = 32

// mayRelayout reports whether the layout may be learned again.
func (a *Audit) mayRelayout() bool {
	if a.reader == nil || a.misfit {
		return true
	}
	if a.pairs < a.layoutAt {
		return false
	}
	return a.pairs <= settled || a.reader.Width < 0 || a.reader.Duplicates || 2*a.unmatched > a.pairs
}

// learnLayout chooses the layout from the retained results. When it changes, all scores return their wealth, and new scores start from the
// retained results.
func (a *Audit) learnLayout(e *book.Epoch) {
	a.layoutAt, a.misfit = 2*a.pairs, false
	var seen []*Outcome
	for i := range a.retained {
		p := &a.retained[i]
		seen = append(seen, &p.worlds[0], &p.worlds[1])
	}
	l := results.Learn(seen)
	if a.reader != nil && l.Equal(&a.reader.Layout) {
		return
	}
	for _, s := range a.all() {
		if s.staked {
			e.Retire = append(e.Retire, s.id)
		}
	}
	a.certificate = nil // its score no longer exists; another event may still be chosen
	a.first.kept = 0
	a.reader = results.NewReader(l, a.opts.MaxSlots, a.opts.Salt, a.errors)
	a.slots, a.specials, a.stride, a.funded, a.unmatched = nil, nil, 1, 0, 0
	a.now, a.repeats, a.ranges, a.orders = [2]result{}, repeats{}, ranges{}, orders{}
	settings := a.settings(&l, seen)
	for _, k := range kinds {
		if k.where&settings != 0 {
			a.specials = append(a.specials, newSeries(k, 0))
		}
	}
	for i := range a.retained {
		p := &a.retained[i]
		if d0, d1 := &p.worlds[0], &p.worlds[1]; !p.cut {
			a.read(d0, d1, [2]uint64{results.Fingerprint(d0), results.Fingerprint(d1)})
		}
	}
}

// anyNumber reports whether a number is in the first row of a result.
func anyNumber(seen []*Outcome) bool {
	for _, o := range seen {
		if len(o.Rows) > 0 && len(o.Rows[0]) > 0 && o.Rows[0][0].Kind == Number {
			return true
		}
	}
	return false
}

// several reports whether there is more than one value to audit. A single value is audited by itself. With more slots, much of the wealth
// goes to the scores that combine all slots. The rest is kept for keys that come later.
func (a *Audit) several() bool { return len(a.slots) > 1 || a.reader.Keyed }

// all returns the slots and the other scores.
func (a *Audit) all() []*series {
	return append(append([]*series(nil), a.specials...), a.slots...)
}

// fundSlots gives wealth to the scores that have none yet.
func (a *Audit) fundSlots(e *book.Epoch) {
	several, numbers := a.several(), a.ofKind(fittedScore) != nil
	left := 1.0
	give := func(s *series, weight float64, views []event.View) {
		p := s.kind.prior
		switch {
		case s.shared:
			views, p = []event.View{event.Ascending}, pairedPrior
		case s.kind == slotScore && s.rare():
			p = supportPrior
		}
		s.id, s.staked = a.book.Open(views, a.mix[p]), true
		e.Grants = append(e.Grants, book.Grant{Score: s.id, Fraction: weight / left})
		left -= weight
	}
	for _, s := range a.specials {
		switch k := s.kind; {
		case s.staked, k.fewSlots && len(a.slots) > maxLearnedSlots:
		case k.texts > 0 && !numbers:
			give(s, k.texts, k.views)
		default:
			give(s, k.weight(several), k.views)
		}
	}
	fresh := len(a.slots) - a.funded
	if fresh == 0 {
		return
	}
	part := .5 / float64(fresh) // of the cash, for keys that came later
	switch {
	case a.funded == 0:
		if part = slotScore.weight(several) / float64(fresh); !several && !numbers { // with what scores of numbers would have
			part += (fittedScore.single + lawScore.single - lawScore.texts) / float64(fresh)
		}
	case a.pairs <= settled && 4*fresh > a.funded:
		for _, s := range a.slots[:a.funded] { // too many for the wealth that is left: divide it again
			e.Retire = append(e.Retire, s.id)
			s.staked = false
		}
		part = .8 / float64(len(a.slots))
	}
	views := a.slotViews()
	for _, s := range a.slots {
		if !s.staked {
			give(s, part, views)
		}
	}
	a.funded = len(a.slots)
}

// manySlots is the number of slots up to which each has several views.
const manySlots = 64

// rare reports whether a slot's group was in at most a fifth of the kept results.
func (s *series) rare() bool {
	there := 0
	for _, codes := range s.past {
		for _, c := range codes {
			there += code.Bit(code.IsNumber(c) || code.CategoryOf(c) != code.Absent)
		}
	}
	return 5*there <= 2*len(s.past[0])
}

// slotViews returns the views of a slot: fewer when there are many.
func (a *Audit) slotViews() []event.View {
	switch {
	case len(a.slots) <= fewSlots:
		return []event.View{event.Ascending, event.Folded, event.Sorted}
	case len(a.slots) <= manySlots:
		return []event.View{event.Ascending, event.Sorted}
	}
	return []event.View{event.Ascending}
}

// firstDivision is the number of pairs at which the wealth is first divided among the scores by what the past shows. It is divided again
// whenever the pairs have doubled, and where many slots share it, whenever they have grown by half.
const firstDivision = 32

// divide moves wealth to the scores whose past gives the strongest evidence against the claim. A quarter of the wealth keeps the
// weights that the scores began with. The rest is divided by these weights times exp(z^2/2), with z the studentised gap of a score's
// events in the past: as if the score had been chosen from the past, like its events. The division depends on the past alone, so that
// every process stays an e-process.
func (a *Audit) divide(e *book.Epoch) {
	if a.pairs < a.divideAt {
		return
	}
	a.divideAt = 2 * a.pairs
	if len(a.slots) > manySlots {
		a.divideAt = a.pairs + a.pairs/2
	}
	weight := func(s *series) float64 {
		if t := s.table; s.kind.lent > 0 && t != nil && t.Laws != nil { // a score that was lent wealth keeps it
			return s.kind.lent
		}
		return s.kind.weight(a.several())
	}
	var logs, prior []float64
	bets := make(map[book.ScoreID]bool, len(e.Entries))
	for _, en := range e.Entries {
		s := a.named(en.Score)
		bets[s.id] = true
		if en.Table.Paired != nil {
			continue
		}
		p := weight(s)
		if s.kind == slotScore {
			p /= float64(len(a.slots))
		}
		e.Shift = append(e.Shift, book.Grant{Score: en.Score})
		prior = append(prior, p)
		if s.kind.divided > 0 {
			p = s.kind.divided
		}
		logs = append(logs, math.Log(p)+event.Strength(a.lead.Null, en.Table, &a.book.Order)/2)
	}
	for _, s := range a.specials {
		if s.staked && !bets[s.id] {
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
	e.At = a.lead.Epsilon
	for i := range e.Shift {
		e.Priors = append(e.Priors, prior[i]/sum)
		e.Shift[i].Fraction = .25*prior[i]/sum + .75*math.Exp(logs[i]-all)
	}
}
