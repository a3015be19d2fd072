package replay

import "sync/atomic"

// sparing is the choice of what rounds of Stream leave out. A Run and those of its parts share it.
type sparing struct {
	next atomic.Pointer[choice] // from the next batch on
	now  []bool                 // worlds that the batch that runs leaves out; belongs to the goroutine that runs it
	// whole: the batch that runs has no hoisted rounds. It belongs to the same goroutine.
	whole bool
}

// choice is an argument of Spare.
type choice struct {
	worlds []bool
	whole  bool
}

// Spare sets the worlds that the rounds of the present Stream leave out, from the batch after the next on at the
// latest: their outcomes are zero. The slice must not be changed any more; nil = none. The first world, D0, is never
// left out. With whole there are no hoisted rounds. It may be called before a loop over Stream and in it.
func (r *Run) Spare(worlds []bool, whole bool) { r.sparing.next.Store(&choice{worlds, whole}) }

// begin begins a batch with the present choice.
func (s *sparing) begin() {
	s.now, s.whole = nil, false
	if next := s.next.Load(); next != nil {
		s.now, s.whole = next.worlds, next.whole
	}
}

// end makes later rounds complete.
func (s *sparing) end() {
	s.now, s.whole = nil, false
	s.next.Store(nil)
}

// spares reports whether a choice leaves out a world.
func spares(spared []bool, world int) bool { return world > 0 && world < len(spared) && spared[world] }
