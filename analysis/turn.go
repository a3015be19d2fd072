package analysis

import (
	"math"
	"slices"
)

// This file is what happens between blocks: the wealth of the finished one is booked, the bound climbs, and the bins,
// events and bets of the next are learned.

// turn ends the block at hand and starts the next. Where it is void, what was won so far is given up.
func (a *Audit) turn(void bool) {
	a.lead.end(&a.book, a.epoch)
	a.epoch.claim = a.lead.latest
	if a.claimAt < 0 {
		a.epoch.claim = math.Inf(-1)
	}
	a.closeEpoch()
	a.path, a.due = append(a.path, a.pathPoint()), true
	n := a.pairs
	next := &epoch{void: void}
	if a.mayRelayout() {
		a.learnLayout(next)
	}
	if a.reader != nil {
		a.fundSlots(next)
		a.learn(next)
		a.divide(next)
		a.certify()
	}
	length := max(1, n/blockDivisor)
	if left := a.opts.MaxTrials - n; left > 0 { // the bound counts whole blocks: the budget ends with one
		length = min(length, left)
	}
	next.share = shareAt(n, n+length)
	a.nextTurn = n + length
	a.open(next)
}

// frozenPairs is the number of pairs from which what answers won that never varied is given up once they vary: it was no
// evidence of an epsilon. In fewer they win next to nothing.
const frozenPairs = 9

// blockDivisor is the number of pairs behind per pair of a block.
const blockDivisor = 8

// shareAt returns the part of a score's wealth that is spread over its components anew after the block from pair m to
// pair n: much when little was known before, almost nothing later.
func shareAt(m, n int) float64 {
	if m <= 2 {
		return .5
	}
	for edge := 4; edge <= 64; edge *= 2 {
		if m < edge && n >= edge {
			return .3
		}
	}
	return 0
}

// open starts an epoch.
func (a *Audit) open(e *epoch) {
	a.epoch = e
	a.lead.begin(&a.book, e)
	e.opened = a.lead.total()
	a.nextLook = a.pairs + a.lookEvery()
}

// lookEvery is how many pairs go by between two looks at the claim: every pair when that is cheap, else about a
// hundredth of what went before.
func (a *Audit) lookEvery() int {
	if a.book.places <= fewPlaces || a.pairs < 64 {
		return 1
	}
	return max(1, (a.pairs-a.first.pairs)/128)
}

// fewPlaces is the number of places up to which a look is cheap.
const fewPlaces = 1024

// closeEpoch files the epoch. Tables that only the claim's process bets on are let go.
func (a *Audit) closeEpoch() {
	kept := a.epoch.entries[:0]
	for _, en := range a.epoch.entries {
		if en.scope != claimAlone {
			kept = append(kept, en)
		}
	}
	a.epoch.entries = slices.Clone(kept) // not what lies behind
	a.book.epochs = append(a.book.epochs, a.epoch)
}

// ofKind returns the score of a kind that is not a slot, nil for none.
func (a *Audit) ofKind(k kind) *series {
	for _, s := range a.specials {
		if s.kind == k {
			return s
		}
	}
	return nil
}

// precise reports whether codes hold a number whose exact repetition cannot be chance.
func precise(codes []code) bool {
	for _, c := range codes {
		if isNumber(c) && entropyBits(c) > 24 {
			return true
		}
	}
	return false
}

// learn sets the tables of the next block and enters them.
func (a *Audit) learn(e *epoch) {
	n := a.pairs
	for _, s := range a.slots {
		if !s.staked {
			continue
		}
		if s.shared && s.table != nil && s.table.paired == nil {
			a.separate(s, e)
		} else if s.shared {
			a.turnPaired(s)
		} else {
			s.turn(n, a.slotBins(), &a.scratch)
		}
		s.independence.renew(s.past, &a.scratch)
		a.reader.words[s.slot%a.reader.cells()].want(s.binner.categories)
		e.entries = append(e.entries, entry{score: s.id, table: s.table, scope: a.slotScope()})
	}
	if a.coupled() {
		for _, s := range a.specials {
			s.table = nil
		}
		return
	}
	a.learnJoint()
	for _, s := range a.specials {
		switch s.kind {
		case laplaceScore, gaussScore:
			if s.table == nil {
				continue
			}
		case fittedScore:
			if a.learnFitted(s); s.table == nil {
				continue
			}
		case lawScore:
			if a.learnLaws(s); s.table == nil {
				continue
			}
		case contrastScore, discriminantScore, fractionScore, ratioScore, finenessScore, productsScore, extremeScore, orderScore:
			if a.learnRelation(s); s.table == nil {
				continue
			}
		case calibratedScore, calibratedLaplaceScore:
			if a.learnCalibrated(s); s.table == nil || !s.staked {
				s.table = nil
				continue
			}
		case repeatScore:
			a.turnRepeats(s)
		case revealScore:
			if a.turnReveal(s, e); s.table.laws == nil {
				continue
			}
		case seldomScore:
			if a.turnSeldom(s, e); s.table.laws == nil {
				continue
			}
		case beyondScore:
			if a.turnBeyond(s); s.table == nil {
				continue
			}
		default:
			s.turn(n, maxSpecialBins, &a.scratch)
		}
		e.entries = append(e.entries, entry{score: s.id, table: s.table})
	}
}

// coupled reports whether the worlds share the noise of a slot in which they differ. Then only bets on pairs are sound: the
// other scores, which look at this slot too, take both worlds for independent.
func (a *Audit) coupled() bool {
	return slices.ContainsFunc(a.slots, func(s *series) bool { return s.shared && s.independence.differ })
}

// Bins that are learned per score.
const (
	fewSlots       = 8   // up to here every slot has many bins and all views, and is bet on at every epsilon
	maxGridSlots   = 256 // up to here slots are bet on above the claim
	maxSpecialBins = 32
)

// slotScope says at which epsilons slots are bet on. Many are left out where it would cost most and tell least.
func (a *Audit) slotScope() scope {
	switch {
	case len(a.slots) <= fewSlots:
		return everywhere
	case len(a.slots) <= maxGridSlots:
		return fromClaim
	}
	return claimAlone
}

func (a *Audit) slotBins() int {
	if len(a.slots) <= fewSlots {
		return 28
	}
	return 20
}

// turnRepeats starts the next table of results seen before. Its bins are given, not learned.
func (a *Audit) turnRepeats(s *series) {
	if s.table != nil {
		s.carry()
		return
	}
	s.binner = binner{categories: []label{onD0Only, onD1Only}}
	s.table = newTable(1, s.binner.bins())
	s.recount()
}

// separate changes a slot whose worlds share their noise to the bet that needs no independence. What was won on the
// assumption that they do not is taken away.
func (a *Audit) separate(s *series, e *epoch) {
	e.void = true
	e.retire = append(e.retire, s.id)
	s.id = a.book.open([]view{ascending}, a.mix.paired)
	e.grants = append(e.grants, grant{s.id, .5})
	a.turnPaired(s)
}

// turnPaired learns the events of a slot whose worlds share their noise.
func (a *Audit) turnPaired(s *series) {
	s.relearn(a.pairs, a.slotBins(), &a.scratch)
	a.book.order = orderOf(s.table, ascending, a.book.order)
	v := ascending
	if !s.table.hasNumbers() {
		v = sorted
		a.book.order = orderOf(s.table, v, a.book.order)
	}
	s.table.paired = &pairedTable{events: chooseEvents(a.lead.null, s.table, v, a.book.order)}
}

// learnJoint fits the joint scores, when there are slots to join; where these are many only every second time.
func (a *Audit) learnJoint() {
	var scores []*series
	for _, s := range a.specials {
		if s.kind == laplaceScore || s.kind == gaussScore {
			scores = append(scores, s)
		}
	}
	if len(scores) == 0 || len(a.slots) < 2 || len(a.slots[0].past[0]) < leastJoint {
		return
	}
	if a.knows(scores[0]) {
		for _, s := range scores {
			s.carry()
		}
		return
	}
	a.joint.learn(a.slots)
	for i, s := range scores {
		s.past = a.joint.scores[i]
		s.relearn(a.pairs, maxSpecialBins, &a.scratch)
		s.past = [2][]code{}
	}
}

// knows reports whether a learned score is good for another block.
func (a *Audit) knows(s *series) bool {
	return s.learned >= 64 && len(a.slots) > fewSlots && 5*s.learned > 4*a.pairs
}

// learnRelation fits a score that is bet on only where the past shows something for it to see.
func (a *Audit) learnRelation(s *series) {
	if !s.staked {
		return
	}
	if a.knows(s) || (s.kind == ratioScore || (s.kind == finenessScore || s.kind == productsScore || s.kind == extremeScore) && a.pairs > 64) && s.learned > 0 && 2*a.pairs < 3*s.learned || s.kind == orderScore && s.learned >= 64 && 2*a.pairs < 3*s.learned || s.kind == fractionScore && s.learned >= 64 && a.pairs < 2*s.learned {
		if s.table != nil {
			s.carry()
		}
		return
	}
	s.learned = a.pairs
	live := false
	if kept := len(a.specials[0].past[0]); kept >= leastJoint {
		switch s.kind {
		case contrastScore:
			live = len(a.slots) > 1 && a.learnContrast()
		case discriminantScore:
			live = len(a.slots) > 1 && a.learnDiscriminant()
		case fractionScore:
			live = a.learnFraction()
		case ratioScore:
			live = a.learnRatio()
		case finenessScore:
			s.past, live = a.learnFineness()
		case productsScore:
			s.past, live = a.learnProducts()
		case extremeScore:
			s.past, live = a.learnExtreme()
		case orderScore:
			s.past, live = a.order.learn()
			s.independence.renew(a.order.codes(), &a.scratch)
		}
	}
	if !live {
		s.table, s.past = nil, [2][]code{}
		return
	}
	switch s.kind {
	case contrastScore:
		all := portion{0, 1, len(a.specials[0].past[0])}
		for w := range s.past {
			s.past[w] = a.contrast.ofPast(nil, a.slots, w, all)
		}
	case discriminantScore:
		s.past = a.discriminant.scores
	case ratioScore:
		s.past = a.learned.scores
	case fractionScore:
		for w, codes := range a.slots[a.fraction.slot].past {
			s.past[w] = make([]code, len(codes))
			for i, c := range codes {
				s.past[w][i] = a.fraction.of(c)
			}
		}
	}
	s.relearn(a.pairs, maxSpecialBins, &a.scratch)
	s.past = [2][]code{}
}
