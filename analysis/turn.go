package analysis

import (
	"math"
	"slices"

	"github.com/dpwatch/dpwatch/analysis/internal/book"
	"github.com/dpwatch/dpwatch/analysis/internal/code"
	"github.com/dpwatch/dpwatch/analysis/internal/event"
)

// This file holds what happens between blocks: the wealth of the finished block is booked, and the bins, events and bets of the next one are
// learned.

// turn ends the current block and starts the next. discard: the gains so far are discarded.
func (a *Audit) turn(discard bool) {
	a.lead.End(&a.book, a.epoch)
	a.epoch.Claim = a.lead.Latest
	if a.claimAt < 0 {
		a.epoch.Claim = math.Inf(-1)
	}
	a.closeEpoch()
	a.path, a.due = append(a.path, a.pathPoint()), true
	a.compare()
	n := a.pairs
	next := &book.Epoch{DiscardGains: discard}
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
	next.Share = shareAt(n, n+length)
	a.nextTurn = n + length
	a.open(next)
}

// frozenPairs is the number of pairs from which the gains on answers that never varied are given up once the answers vary: they were no
// evidence of an epsilon. In fewer pairs the gains are negligible.
const frozenPairs = 9

// blockDivisor is the number of pairs behind per pair of a block.
const blockDivisor = 8

// shareAt returns the part of a score's wealth that is spread over its components again after the block from pair m to pair n: much in the
// first blocks, almost nothing later.
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
func (a *Audit) open(e *book.Epoch) {
	a.epoch = e
	a.lead.Begin(&a.book, e)
	e.Opened = a.lead.Total()
	a.nextLook = a.pairs + a.lookEvery()
}

// lookEvery returns the number of pairs between two looks at the claim: 1 if looks are cheap, else about a hundredth of the pairs so far.
func (a *Audit) lookEvery() int {
	if a.book.Places <= fewPlaces || a.pairs < 64 {
		return 1
	}
	return max(1, (a.pairs-a.first.pairs)/128)
}

// fewPlaces is the number of places up to which a look is cheap.
const fewPlaces = 1024

// closeEpoch adds the epoch to the book, without the tables that only the claim's process bets on.
func (a *Audit) closeEpoch() {
	kept := a.epoch.Entries[:0]
	for _, en := range a.epoch.Entries {
		if en.Scope != book.ClaimAlone {
			kept = append(kept, en)
		}
	}
	a.epoch.Entries = slices.Clone(kept) // not the rest of the array
	a.book.Epochs = append(a.book.Epochs, a.epoch)
}

// ofKind returns the score of a kind that is not a slot, nil for none.
func (a *Audit) ofKind(k *kind) *series {
	for _, s := range a.specials {
		if s.kind == k {
			return s
		}
	}
	return nil
}

// precise reports whether codes hold a number whose exact repetition cannot be chance.
func precise(codes []code.Code) bool {
	for _, c := range codes {
		if code.IsNumber(c) && code.SignificantBits(c) > 24 {
			return true
		}
	}
	return false
}

// learn sets the tables of the next block and enters them.
func (a *Audit) learn(e *book.Epoch) {
	for _, s := range a.slots {
		if s.staked {
			s.statistic.(learner).learn(a, s, e)
			e.Entries = append(e.Entries, book.Entry{Score: s.id, Table: s.table, Scope: a.slotScope()})
		}
	}
	if a.coupled() {
		for _, s := range a.specials {
			s.table = nil
		}
		return
	}
	a.learnJoint()
	for _, s := range a.specials {
		switch m := s.statistic.(type) {
		case learner:
			m.learn(a, s, e)
		case fitter:
			a.learnRelation(s, m)
		}
		if !s.staked {
			s.table = nil
		}
		if s.table != nil && (s.kind.prior != lawPrior || s.table.Laws != nil) {
			e.Entries = append(e.Entries, book.Entry{Score: s.id, Table: s.table})
		}
	}
}

// coupled reports whether the worlds share the noise of a slot in which they differ. Then only bets on pairs are sound: the
// other scores, which use this slot too, assume that both worlds are independent.
func (a *Audit) coupled() bool {
	return slices.ContainsFunc(a.slots, func(s *series) bool { return s.shared && s.independence.Differ })
}

// Bins that are learned per score.
const (
	fewSlots       = 8   // up to here every slot has many bins and all views, and is bet on at every epsilon
	maxGridSlots   = 256 // up to here slots are bet on above the claim
	maxSpecialBins = 32
)

// slotScope returns the epsilons at which slots are bet on. With many slots, epsilons are left out at which bets take the most time and give
// the least evidence.
func (a *Audit) slotScope() book.Scope {
	switch {
	case len(a.slots) <= fewSlots:
		return book.Everywhere
	case len(a.slots) <= maxGridSlots:
		return book.FromClaim
	}
	return book.ClaimAlone
}

func (a *Audit) slotBins() int {
	if len(a.slots) <= fewSlots {
		return 28
	}
	return 20
}

// separate changes a slot whose worlds share their noise to the bet that needs no independence. The gains on the assumption of independence
// are discarded.
func (a *Audit) separate(s *series, e *book.Epoch) {
	e.DiscardGains = true
	e.Retire = append(e.Retire, s.id)
	s.id = a.book.Open([]event.View{event.Ascending}, a.mix[pairedPrior])
	e.Grants = append(e.Grants, book.Grant{Score: s.id, Fraction: .5})
	a.turnPaired(s)
}

// turnPaired learns the events of a slot whose worlds share their noise.
func (a *Audit) turnPaired(s *series) {
	s.relearn(a.pairs, a.slotBins(), &a.scratch)
	a.book.Order = event.OrderOf(s.table, event.Ascending, a.book.Order)
	v := event.Ascending
	if !s.table.HasNumbers() {
		v = event.Sorted
		a.book.Order = event.OrderOf(s.table, v, a.book.Order)
	}
	s.table.Paired = &event.Paired{Events: event.Choose(a.lead.Null, s.table, v, a.book.Order)}
}

// knows reports whether what a score has learned is used for another block.
func (a *Audit) knows(s *series) bool {
	return s.learned >= 64 && len(a.slots) > fewSlots && 5*s.learned > 4*a.pairs
}
