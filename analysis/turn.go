package analysis

import (
	"math"
	"slices"

	"github.com/dpwatch/dpwatch/analysis/internal/book"
	"github.com/dpwatch/dpwatch/analysis/internal/results"
	"github.com/dpwatch/dpwatch/analysis/internal/score"
)

// This file holds what happens between blocks: the wealth of the finished block is booked, and the bins, events and
// bets of the next one are learned.

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
	if a.scores.Reader != nil {
		t := &score.Turn{Pairs: n, Null: a.lead.Null, Book: &a.book, Epoch: next, Mixtures: &a.mix}
		a.scores.Fund(t)
		a.scores.Learn(t)
		if n >= a.divideAt {
			a.divideAt = a.scores.NextDivision(n)
			a.scores.Divide(t)
		}
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

// frozenPairs is the number of pairs from which the gains on answers that never varied are given up once the answers
// vary: they were no evidence of an epsilon. In fewer pairs the gains are negligible.
const frozenPairs = 9

// blockDivisor is the number of pairs behind per pair of a block.
const blockDivisor = 8

// shareAt returns the part of a score's wealth that is spread over its components again after the block from pair m to
// pair n: much in the first blocks, almost nothing later.
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

// lookEvery returns the number of pairs between two looks at the claim: 1 if looks are cheap, else about a hundredth of
// the pairs so far.
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

// mayRelayout reports whether the layout may be learned again.
func (a *Audit) mayRelayout() bool {
	if a.scores.Reader == nil || a.misfit {
		return true
	}
	if a.pairs < a.layoutAt {
		return false
	}
	return a.pairs <= score.Settled || a.scores.Reader.Width < 0 || a.scores.Reader.Duplicates || 2*a.unmatched > a.pairs
}

// learnLayout chooses the layout from the retained results. When it changes, all scores return their wealth, and new
// scores start from the retained results.
func (a *Audit) learnLayout(e *book.Epoch) {
	a.layoutAt, a.misfit = 2*a.pairs, false
	var seen []*Outcome
	for i := range a.retained {
		p := &a.retained[i]
		seen = append(seen, &p.worlds[0], &p.worlds[1])
	}
	l := results.Learn(seen)
	if a.scores.Reader != nil && l.Equal(&a.scores.Reader.Layout) {
		return
	}
	a.scores.Retire(e)
	a.certificate = nil // its score no longer exists; another event may still be chosen
	a.first.kept = 0
	a.unmatched, a.buckets = 0, nil
	errors := a.scores.Errors
	a.scores = score.NewSet(results.NewReader(l, a.opts.MaxSlots, a.opts.Salt, errors), errors, seen, a.opts.Unordered)
	for i := range a.retained {
		p := &a.retained[i]
		if d0, d1 := &p.worlds[0], &p.worlds[1]; !p.cut {
			a.read(d0, d1, [2]uint64{results.Fingerprint(d0), results.Fingerprint(d1)})
		}
	}
}
