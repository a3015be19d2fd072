package score

import (
	"slices"

	"github.com/dpwatch/dpwatch/analysis/internal/book"
	"github.com/dpwatch/dpwatch/analysis/internal/eprocess"
	"github.com/dpwatch/dpwatch/analysis/internal/event"
)

// Turn is the start of a block of pairs, at which scores learn and wealth moves.
type Turn struct {
	Pairs    int           // so far
	Null     eprocess.Null // the claim
	Book     *book.Book    // opens scores
	Epoch    *book.Epoch   // receives what the block is bet on
	Apart    Bets          // of the scores that are apart
	Mixtures *Mixtures
}

// Bets are a book that opens scores, and the epoch that receives what a block is bet on.
type Bets struct {
	Book  *book.Book
	Epoch *book.Epoch
}

// Learn sets the tables of the next block and enters them.
func (set *Set) Learn(t *Turn) {
	set.pairs, set.null = t.Pairs, t.Null
	e := t.Epoch
	for _, s := range set.Slots {
		if s.staked {
			paired := s.Table == nil || s.Table.Paired != nil
			s.statistic.(learner).learn(&set.Input, s)
			if s.Shared && !paired {
				t.separate(s)
			}
			e.Entries = append(e.Entries, book.Entry{Score: s.id, Table: s.Table, Scope: set.slotScope()})
		}
	}
	if set.coupled() {
		for _, s := range set.specials {
			s.Table = nil
		}
		return
	}
	set.learnJoint()
	for _, s := range set.specials {
		switch m := s.statistic.(type) {
		case lender: // before learner: one may embed the other
			if part := m.learnLent(&set.Input, s); part > 0 {
				e.Lend = append(e.Lend, book.Grant{Score: s.id, Fraction: part})
			}
		case learner:
			m.learn(&set.Input, s)
		case fitter:
			set.learnRelation(s, m)
		}
		if !s.staked {
			s.Table = nil
		}
		if s.Table != nil && (s.kind.prior != LawPrior || s.Table.Laws != nil) {
			to := e
			if set.apart(s) {
				to = t.Apart.Epoch
			}
			to.Entries = append(to.Entries, book.Entry{Score: s.id, Table: s.Table})
		}
	}
}

// coupled reports whether the worlds share the noise of a slot in which they differ. Then only bets on pairs are sound:
// the other scores, which use this slot too, assume that both worlds are independent.
func (in *Input) coupled() bool {
	return slices.ContainsFunc(in.Slots, func(s *Series) bool { return s.Shared && s.Independence.Differ })
}

// learnRelation fits a score, unless what it has learned is used for another block.
func (in *Input) learnRelation(s *Series, f fitter) {
	if !s.staked {
		return
	}
	if in.knows(s) || s.kind.lasts(in.pairs, s.learned) {
		if s.Table != nil {
			s.carry()
		}
		return
	}
	s.learned = in.pairs
	if len(in.Slots) == 0 && s.kind.where != everyResult || len(in.specials[0].Past[0]) < leastJoint {
		s.Table = nil
		return
	}
	past, differ := f.fit(in, s)
	if s.Table = nil; differ {
		s.relearnFrom(past, in.pairs, &in.scratch)
	}
}

// slotScope returns the epsilons at which slots are bet on. With many slots, epsilons are left out at which bets take
// the most time and give the least evidence.
func (in *Input) slotScope() book.Scope {
	switch {
	case len(in.Slots) <= FewSlots:
		return book.Everywhere
	case len(in.Slots) <= maxGridSlots:
		return book.FromClaim
	}
	return book.ClaimAlone
}

// separate gives the wealth of a slot whose worlds share their noise to the bet that needs no independence. The gains
// on the assumption of independence are discarded.
func (t *Turn) separate(s *Series) {
	e := t.Epoch
	e.DiscardGains = true
	e.Retire = append(e.Retire, s.id)
	s.id = t.Book.Open([]event.View{event.Ascending}, t.Mixtures[PairedPrior])
	e.Grants = append(e.Grants, book.Grant{Score: s.id, Fraction: .5})
}

// turnPaired learns the events of a slot whose worlds share their noise.
func (in *Input) turnPaired(s *Series) {
	s.relearn(in.pairs, in.slotBins(), &in.scratch)
	in.order = event.OrderOf(s.Table, event.Ascending, in.order)
	v := event.Ascending
	if !s.Table.HasNumbers() {
		v = event.Sorted
		in.order = event.OrderOf(s.Table, v, in.order)
	}
	s.Table.Paired = &event.Paired{Events: event.Choose(in.null, s.Table, v, in.order)}
}
