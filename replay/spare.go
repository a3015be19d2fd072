package replay

import "sync/atomic"

// sparing is the choice of the worlds that rounds of Stream leave out. A Run and those of its parts share it.
type sparing struct {
	next atomic.Pointer[[]bool] // from the next batch on
	now  []bool                 // of the batch that runs; belongs to the goroutine that runs it
}

// Spare sets the worlds that the rounds of the present Stream leave out, from the batch after the next on at the
// latest: their outcomes are zero. The slice must not be changed any more; nil = none. The first world, D0, is never
// left out. It may be called in a loop over Stream.
func (r *Run) Spare(worlds []bool) { r.sparing.next.Store(&worlds) }

// begin begins a batch with the present choice.
func (s *sparing) begin() {
	s.now = nil
	if next := s.next.Load(); next != nil {
		s.now = *next
	}
}

// end makes later rounds whole.
func (s *sparing) end() {
	s.now = nil
	s.next.Store(nil)
}

// spares reports whether a choice leaves out a world.
func spares(spared []bool, world int) bool { return world > 0 && world < len(spared) && spared[world] }
