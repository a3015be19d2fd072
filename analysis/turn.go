package analysis

import (
	"github.com/dpwatch/dpwatch/analysis/internal/book"
	"github.com/dpwatch/dpwatch/analysis/internal/results"
	"github.com/dpwatch/dpwatch/analysis/internal/score"
)

// This file holds what happens between blocks: the wealth of the finished block is booked, and the bins, events and
// bets of the next one are learned.

// turn ends the current block and starts the next. discard: the gains so far are discarded.
func (a *Audit) turn(discard bool) {
	o, v := &a.observed, &a.evidence
	n := o.pairs
	v.end(n)
	a.phases.compare(o, v)
	next, apart := &book.Epoch{DiscardGains: discard}, &book.Epoch{}
	if o.mayRelayout() {
		a.learnLayout(next, apart)
	}
	if o.scores.Reader != nil {
		t := &score.Turn{Pairs: n, Null: v.strongest().Null, Book: &v.book, Epoch: next, Apart: score.Bets{Book: &a.apart.book, Epoch: apart}, Mixtures: &v.mix}
		o.scores.Fund(t)
		o.scores.Learn(t)
		if n >= a.divideAt {
			a.divideAt = o.scores.NextDivision(n)
			o.scores.Divide(t)
		}
		if a.certificate == nil && 2*n >= a.opts.MaxTrials {
			a.certificate = newCertificate(o, &v.book.Order, a.opts.MaxTrials-n, v.delta)
		}
	}
	length := max(1, n/blockDivisor)
	if left := a.opts.MaxTrials - n; left > 0 { // the bound counts whole blocks: the budget ends with one
		length = min(length, left)
	}
	next.Share = shareAt(n, n+length)
	a.nextTurn = n + length
	v.begin(next)
	a.apart.turn(apart, next)
	a.nextLook = n + v.lookEvery(n, a.phases.first.pairs)
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

// fewPlaces is the number of places up to which a look is cheap.
const fewPlaces = 1024

// mayRelayout reports whether the layout may be learned again.
func (o *observations) mayRelayout() bool {
	if o.scores.Reader == nil || o.misfit {
		return true
	}
	if o.pairs < o.layoutAt {
		return false
	}
	return o.pairs <= score.Settled || o.scores.Reader.Width < 0 || o.scores.Reader.Duplicates || 2*o.unmatched > o.pairs
}

// learnLayout chooses the layout from the retained results. When it changes, all scores return their wealth, and new
// scores start from the retained results.
func (a *Audit) learnLayout(e, apart *book.Epoch) {
	o := &a.observed
	o.layoutAt, o.misfit = 2*o.pairs, false
	var seen []*Outcome
	for i := range o.retained {
		p := &o.retained[i]
		seen = append(seen, &p.worlds[0], &p.worlds[1])
	}
	l := results.Learn(seen)
	if o.scores.Reader != nil && l.Equal(&o.scores.Reader.Layout) {
		return
	}
	o.scores.Retire(e, apart)
	a.certificate = nil // its score no longer exists; another event may still be chosen
	a.phases.first.kept = 0
	o.unmatched, o.buckets = 0, nil
	errors := o.scores.Errors
	o.scores = score.NewSet(results.NewReader(l, a.opts.MaxSlots, a.opts.Salt, errors), errors, o.scores.Exact, seen, a.opts.scores())
	for i := range o.retained {
		p := &o.retained[i]
		if d0, d1 := &p.worlds[0], &p.worlds[1]; !p.cut {
			o.read(d0, d1, a.fingerprints(d0, d1), true, a.opts.MaxTrials, nil)
		}
	}
}
