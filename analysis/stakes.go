package analysis

import "math"

// This file is how results are read and what each score has to bet with: the layout, and the shares of the wealth.

// Weights of the scores. A single value is audited by itself; with more slots a good part goes to the scores that see
// all of a person's traces at once. What is left stays for keys that come later.
func weightsFor(many bool) (w stakesOf) {
	if many {
		return stakesOf{slots: .324, rows: .12, repeats: .03, reveal: .001, seldom: .001, lowBit: .02, fineness: .01, laplace: .13, calibratedLaplace: .08, gauss: .13, contrast: .02, discriminant: .03, products: .005, extreme: .005, fraction: .005, ratio: .02, calibrated: .035, order: .005}
	}
	return stakesOf{slots: .279, rows: .01, repeats: .02, reveal: .001, seldom: .001, lowBit: .05, fineness: .07, fitted: .04, law: .5, words: .4, fraction: .005, beyond: .02}
}

type stakesOf struct {
	slots, rows, repeats, reveal, seldom, lowBit, laplace, gauss, fitted, law, words, contrast, discriminant, products, extreme, fraction, ratio, calibrated, calibratedLaplace, fineness, beyond, order float64
}

// mixtures are the priors over effect sizes.
type mixtures struct{ shift, fitted, support, paired, law mixture }

func newMixtures(noClaim bool) mixtures {
	x := excesses(noClaim)
	return mixtures{
		shift:   shiftMixture(x),
		fitted:  fittedMixture(x),
		support: supportMixture(x),
		paired:  pairedMixture(),
		law:     lawMixture(),
	}
}

// settled is the number of pairs from which the layout changes only when results do not fit it.
const settled = 32

// mayRelayout reports whether the layout is to be looked at again.
func (a *Audit) mayRelayout() bool {
	if a.reader == nil || a.misfit {
		return true
	}
	if a.pairs < a.layoutAt {
		return false
	}
	return a.pairs <= settled || a.reader.width < 0 || a.reader.duplicates || 2*a.unmatched > a.pairs
}

// learnLayout chooses the layout from the results at hand. When it changes, all scores give back their wealth, and new
// ones start from the results that were retained.
func (a *Audit) learnLayout(e *epoch) {
	a.layoutAt, a.misfit = 2*a.pairs, false
	var seen []*Outcome
	for i := range a.retained {
		p := &a.retained[i]
		seen = append(seen, &p.worlds[0], &p.worlds[1])
	}
	l := learnLayout(seen)
	if a.reader != nil && l.equal(&a.reader.layout) {
		return
	}
	for _, s := range a.all() {
		if s.staked {
			e.retire = append(e.retire, s.id)
		}
	}
	a.certificate = nil // its score is no more; another event may still be chosen
	a.first.kept = 0
	a.reader = newReader(l, &a.opts, a.errors)
	a.slots, a.joint, a.stride, a.funded, a.unmatched = nil, joint{}, 1, 0, 0
	a.contrast, a.discriminant, a.fraction, a.learned, a.fineness = combination{}, discriminant{}, fraction{}, learned{}, fineness{}
	a.products, a.extreme, a.order = products{}, extreme{}, rowOrder{}
	a.ranks = [2]ranked{}
	a.codes = [2][]code{}
	a.specials = []*series{{kind: rowsScore}, {kind: repeatScore}, {kind: lowBitScore}, {kind: revealScore}, {kind: seldomScore}}
	if l.keyed || len(l.measures) > 1 {
		for _, k := range [...]kind{laplaceScore, gaussScore, contrastScore, discriminantScore, ratioScore, calibratedScore, calibratedLaplaceScore, productsScore, extremeScore} {
			a.specials = append(a.specials, &series{kind: k})
		}
	} else if l.width >= 0 {
		if anyNumber(seen) || len(l.forms) > 0 && l.forms[0].Parts() > 0 {
			a.specials = append(a.specials, &series{kind: fittedScore}, &series{kind: beyondScore})
		}
		a.specials = append(a.specials, &series{kind: lawScore})
	}
	if l.width >= 0 {
		a.specials = append(a.specials, &series{kind: fractionScore}, &series{kind: finenessScore})
	}
	if len(l.keys) > 0 && !a.opts.Unordered {
		a.specials = append(a.specials, &series{kind: orderScore})
	}
	a.repeats, a.beyond = repeats{}, beyond{}
	for i := range a.retained {
		p := &a.retained[i]
		if d0, d1 := &p.worlds[0], &p.worlds[1]; !p.cut {
			a.read(d0, d1, [2]uint64{fingerprint(d0), fingerprint(d1)})
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

// all returns the slots and the other scores.
func (a *Audit) all() []*series {
	return append(append([]*series(nil), a.specials...), a.slots...)
}

// fundSlots gives wealth to the scores that have none yet.
func (a *Audit) fundSlots(e *epoch) {
	w := weightsFor(len(a.slots) > 1 || a.reader.keyed)
	left := 1.0
	give := func(s *series, weight float64, views []view) {
		m := a.mix.shift
		switch {
		case s.shared:
			views, m = []view{ascending}, a.mix.paired
		case s.kind == fittedScore:
			m = a.mix.fitted
		case s.kind == lawScore || s.kind == calibratedScore || s.kind == calibratedLaplaceScore || s.kind == revealScore || s.kind == seldomScore:
			m = a.mix.law
		case s.kind == lowBitScore || s.kind == repeatScore || s.kind == beyondScore || s.kind == finenessScore || s.kind == slotScore && s.rare():
			m = a.mix.support
		}
		s.id, s.staked = a.book.open(views, m), true
		e.grants = append(e.grants, grant{s.id, weight / left})
		left -= weight
	}
	for _, s := range a.specials {
		if s.staked {
			continue
		}
		switch s.kind {
		case rowsScore:
			give(s, w.rows, []view{ascending, sorted})
		case repeatScore:
			give(s, w.repeats, []view{sorted})
		case revealScore:
			give(s, w.reveal, []view{ascending})
		case seldomScore:
			give(s, w.seldom, []view{ascending})
		case lowBitScore:
			give(s, w.lowBit, []view{ascending})
		case laplaceScore:
			give(s, w.laplace, []view{ascending})
		case gaussScore:
			give(s, w.gauss, []view{ascending})
		case fittedScore:
			give(s, w.fitted, []view{ascending})
		case lawScore:
			weight := w.law
			if a.ofKind(fittedScore) == nil {
				weight = w.words
			}
			give(s, weight, []view{ascending})
		case contrastScore:
			give(s, w.contrast, []view{ascending, sorted})
		case discriminantScore:
			give(s, w.discriminant, []view{ascending})
		case productsScore:
			give(s, w.products, []view{ascending})
		case extremeScore:
			give(s, w.extreme, []view{ascending})
		case fractionScore:
			give(s, w.fraction, []view{sorted})
		case finenessScore:
			give(s, w.fineness, []view{ascending})
		case beyondScore:
			give(s, w.beyond, []view{sorted})
		case orderScore:
			give(s, w.order, []view{ascending, sorted})
		case ratioScore:
			if len(a.slots) <= maxLearnedSlots {
				give(s, w.ratio, []view{ascending})
			}
		case calibratedLaplaceScore:
			give(s, w.calibratedLaplace, []view{ascending})
		case calibratedScore:
			if len(a.slots) <= maxLearnedSlots {
				give(s, w.calibrated, []view{ascending})
			}
		}
	}
	fresh := len(a.slots) - a.funded
	if fresh == 0 {
		return
	}
	part := .5 / float64(fresh) // of the cash, for keys that came later
	switch {
	case a.funded == 0:
		if part = w.slots / float64(fresh); a.ofKind(fittedScore) == nil {
			part += (w.fitted + w.law - w.words) / float64(fresh)
		}
	case a.pairs <= settled && 4*fresh > a.funded:
		for _, s := range a.slots[:a.funded] { // too many to live on what was left: share anew
			e.retire = append(e.retire, s.id)
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
			there += b2i(isNumber(c) || categoryOf(c) != absent)
		}
	}
	return 5*there <= 2*len(s.past[0])
}

// slotViews returns the views of a slot: fewer when there are many.
func (a *Audit) slotViews() []view {
	switch {
	case len(a.slots) <= fewSlots:
		return []view{ascending, folded, sorted}
	case len(a.slots) <= manySlots:
		return []view{ascending, sorted}
	}
	return []view{ascending}
}

// firstDivision is the number of pairs at which the wealth is first divided among the scores by what the past shows;
// it is again at every doubling, and where many slots share it, whenever the pairs have grown by half.
const firstDivision = 32

// shownBeyond is the weight by which a share is given to what one world never shows, where the past has that.
const shownBeyond = .25

// divide moves wealth to the scores whose past speaks loudest against the claim. A quarter of it keeps the weights that the
// scores began with; the rest goes by these weights times exp(z^2/2), z the studentised gap of a score's events in
// the past: as if the score had been chosen from the past, like its events. The past decides, so that every process
// stays an e-process.
func (a *Audit) divide(e *epoch) {
	if a.pairs < a.divideAt {
		return
	}
	a.divideAt = 2 * a.pairs
	if len(a.slots) > manySlots {
		a.divideAt = a.pairs + a.pairs/2
	}
	w := weightsFor(len(a.slots) > 1 || a.reader.keyed)
	for _, r := range a.specials { // those that were lent a part keep it
		if t := r.table; t != nil && t.laws != nil && r.kind == revealScore {
			w.reveal = revealShare / (1 - revealShare)
		} else if t != nil && t.laws != nil && r.kind == seldomScore {
			w.seldom = seldomShare / (1 - seldomShare)
		}
	}
	var loud, prior []float64
	bets := make(map[scoreID]bool, len(e.entries))
	for _, en := range e.entries {
		s := a.named(en.score)
		bets[s.id] = true
		if en.table.paired != nil {
			continue
		}
		p := w.of(s.kind)
		if s.kind == slotScore {
			p /= float64(len(a.slots))
		}
		e.shift = append(e.shift, grant{score: en.score})
		prior = append(prior, p)
		if s.kind == beyondScore { // it has a table only where the past shows it
			p = shownBeyond
		}
		loud = append(loud, math.Log(p)+loudness(a.lead.null, en.table, &a.book)/2)
	}
	for _, s := range a.specials {
		if s.staked && !bets[s.id] {
			e.shift = append(e.shift, grant{score: s.id})
			prior = append(prior, w.of(s.kind))
			loud = append(loud, math.Inf(-1))
		}
	}
	all, sum := logSumExp(loud), 0.0
	if math.IsInf(all, -1) { // nothing is bet on
		e.shift = nil
		return
	}
	for _, p := range prior {
		sum += p
	}
	e.at = a.lead.epsilon
	for i := range e.shift {
		e.priors = append(e.priors, prior[i]/sum)
		e.shift[i].fraction = .25*prior[i]/sum + .75*math.Exp(loud[i]-all)
	}
}

// loudness is the sum of the squared studentised gaps of the two events that a score would bet on. Where every bin is bet
// on it is what stands for that: twice the logarithm of what the bet would have gained in the past.
func loudness(h null, t *table, k *book) float64 {
	if t.laws != nil {
		odds := make([]float64, 2*t.bins())
		t.laws.place(h, odds)
		return 2 * max(0, gainOf(odds, t.before))
	}
	v := ascending
	if !t.hasNumbers() {
		v = sorted
	}
	k.order = orderOf(t, v, k.order)
	return chooseEvents(h, t, v, k.order).z2
}

// of returns the weight of a kind of score.
func (w *stakesOf) of(k kind) float64 {
	switch k {
	case slotScore:
		return w.slots
	case rowsScore:
		return w.rows
	case repeatScore:
		return w.repeats
	case revealScore:
		return w.reveal
	case seldomScore:
		return w.seldom
	case lowBitScore:
		return w.lowBit
	case laplaceScore:
		return w.laplace
	case gaussScore:
		return w.gauss
	case fittedScore:
		return w.fitted
	case lawScore:
		return w.law
	case contrastScore:
		return w.contrast
	case discriminantScore:
		return w.discriminant
	case productsScore:
		return w.products
	case extremeScore:
		return w.extreme
	case fractionScore:
		return w.fraction
	case ratioScore:
		return w.ratio
	case calibratedLaplaceScore:
		return w.calibratedLaplace
	case calibratedScore:
		return w.calibrated
	case finenessScore:
		return w.fineness
	case beyondScore:
		return w.beyond
	case orderScore:
		return w.order
	}
	return 0
}
