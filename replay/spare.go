package replay

import (
	"context"
	"sync/atomic"
)

// Choice says what the rounds of a Stream are.
type Choice struct {
	Spared  []bool // worlds that they leave out, never D0: their outcomes are zero; nil = none. It must not be changed any more
	Whole   bool   // none is hoisted
	Opening bool   // some are the first trial of a session: one for openingEvery of the whole query
}

// openingEvery is the number of rounds of the whole query for each opening one.
const openingEvery = 16

// sparing is the choice of what rounds of Stream are. A Run and those of its parts share it.
type sparing struct {
	next atomic.Pointer[Choice] // from the next batch on
	// The fields below belong to the goroutine that runs the batch.
	now   []bool // worlds that it leaves out
	whole bool
	opens bool
}

// Choose sets what the rounds of the present Stream are, from the batch after the next on at the latest. It may be
// called before a loop over Stream and in it.
func (r *Run) Choose(c Choice) { r.sparing.next.Store(&c) }

// begin begins a batch with the present choice.
func (s *sparing) begin() {
	s.now, s.whole, s.opens = nil, false, false
	if next := s.next.Load(); next != nil {
		s.now, s.whole, s.opens = next.Spared, next.Whole, next.Opening
	}
}

// end makes later rounds complete.
func (s *sparing) end() {
	s.now, s.whole, s.opens = nil, false, false
	s.next.Store(nil)
}

// openingRounds returns the opening rounds that are due after n rounds of the whole query.
func (r *Run) openingRounds(ctx context.Context, n int) ([]Round, error) {
	if !r.sparing.opens || r.exec.stmt.Separate != nil {
		return nil, nil
	}
	r.owed += n
	due := r.owed / openingEvery
	if r.owed %= openingEvery; due == 0 {
		return nil, nil
	}
	one := *r
	one.hoist, one.exec.stmt.Hoist, one.exec.stmt.Separate = nil, nil, &Separation{}
	return one.runSeparate(ctx, due)
}

// spares reports whether a choice leaves out a world.
func spares(spared []bool, world int) bool { return world > 0 && world < len(spared) && spared[world] }
