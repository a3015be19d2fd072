package exact

import (
	"maps"
	"math"
	"slices"

	"github.com/dpwatch/dpwatch/analysis/internal/code"
	"github.com/dpwatch/dpwatch/internal/outcome"
)

// Answers are the questions of an audit and what is known of their answers. It is not safe for concurrent use.
type Answers struct {
	unordered bool // the order of rows has no meaning
	coarse    bool // the lowest bits of numbers do not count

	begun   bool
	pairs   int
	keys    []int // columns that tell the rows of a result apart
	asked   [readings]questions
	cells   map[uint64]*cell
	seen    memory
	values  buckets
	linked  pairsOfCells
	texts   []texts // per column
	longest int     // text, in bytes
	now     [2]result
	window  window

	order    []place  // of the cells in the latest result; no part of the state
	at       int      // in order
	rows     ordinals // of keys
	words    ordinals // before numbers
	ordering []uint64
	hashes   []uint64 // of the values of the result that is read, row by row
	stamp    int      // of this result
	depth    depth    // to which the pair is read
	hot      bool     // a cell is hot
	scored   bool     // a question counted in the scores of the latest pair
}

// place is the cell that was at some place of the latest result, nil where none is asked about.
type place struct {
	id uint64
	c  *cell
}

// answer is one of a result to the question in a slot.
type answer struct {
	slot int32
	code uint8
}

// result is what was read of one.
type result struct {
	score   float64
	answers [readings][]answer
	seen    []uint64  // values that were looked up
	numbers []waiting // of cells that have no edges yet
	texts   []text
	bits    []bit // of the pasts of cells
	present presence
}

type waiting struct {
	c *cell
	n number
}

type text struct {
	c    *cell
	text string
}

// New returns the questions of an audit that has seen nothing. Lowest bits of numbers do not count if coarse is set.
func New(unordered, coarse bool) *Answers {
	a := &Answers{unordered: unordered, coarse: coarse, cells: map[uint64]*cell{}}
	for r := range readings {
		a.asked[r] = newQuestions(r)
	}
	return a
}

// FirstPairs is the number of pairs after which an audit begins to ask: they show what the rows are told apart by.
const FirstPairs = 8

// Begin learns from the first pairs which columns tell rows apart, and reads those that are whole.
func (a *Answers) Begin(first [][2]*outcome.Outcome, whole []bool) {
	a.learnKeys(first)
	a.begun = true
	for i, p := range first {
		if whole[i] {
			a.Read(p)
			a.Count()
		}
	}
	for r := range a.asked {
		a.move(reading(r), true)
	}
}

// Read reads a pair of results and returns their scores: log-odds of D0 against D1, 0 while nothing is known.
func (a *Answers) Read(pair [2]*outcome.Outcome) (scores [2]code.Code) {
	if !a.begun {
		return scores
	}
	if a.depth = a.deep(); a.depth == skipped {
		return scores
	}
	least := a.least()
	a.scored = a.Found()
	for w, o := range pair {
		r := &a.now[w]
		r.clear()
		a.read(o, r)
		for k := range a.asked {
			q := &a.asked[k]
			if len(q.leads) == 0 || q.gain() <= least {
				continue
			}
			for _, x := range r.answers[k] {
				if q.best[x.slot] && q.gains[x.slot] > least {
					r.score += q.odds(x.slot, x.code)
				}
			}
		}
		if a.values.gain > least {
			r.score += a.values.score(&r.present)
		}
		if math.IsNaN(r.score) {
			r.score = 0
		}
		scores[w] = r.score
	}
	return scores
}

// least is the gain from which a question counts: half of the best one, and more if that one tells nearly every result's
// world by itself, which others can only blur.
func (a *Answers) least() float32 {
	top := a.values.gain
	for k := range a.asked {
		top = max(top, a.asked[k].gain())
	}
	all := float32(2*math.Ln2) * float32(a.pairs)
	return max(leastGain, top*max(.5, min(top/all, .95)))
}

// Found reports whether any question counts.
func (a *Answers) Found() bool {
	least := a.least()
	for k := range a.asked {
		if a.asked[k].gain() > least {
			return true
		}
	}
	return a.values.gain > least
}

// Count counts the pair that was read.
func (a *Answers) Count() {
	if !a.begun {
		return
	}
	a.pairs++
	if a.depth == skipped {
		return
	}
	if a.scored {
		a.window.add(a.now[0].score, a.now[1].score)
	}
	for w := range a.now {
		r := &a.now[w]
		for k := range a.asked {
			q := &a.asked[k]
			for _, x := range r.answers[k] {
				q.learn(w, x.slot, x.code)
			}
		}
		for _, h := range r.seen {
			a.seen.add(w, h)
		}
		for _, x := range r.numbers {
			x.c.learnEdges(x.n, w, &a.asked[numberBin])
		}
		if a.pairs <= stripPairs || a.pairs%slicePairs == 0 {
			for _, x := range r.texts {
				x.c.strip(x.text)
			}
		}
		if a.depth == whole {
			a.values.count(w, &r.present)
		}
		for _, b := range r.bits {
			b.c.past[w].push(b.one)
		}
	}
	if a.depth == whole {
		a.values.pairs++
	}
	if a.pairs%championStep == 0 {
		for k := range a.asked {
			a.asked[k].choose()
		}
		a.values.choose()
		a.linked.search(a)
		a.heat()
	}
	for k := range a.asked {
		a.move(reading(k), false)
	}
}

// move moves the slice of a reading.
func (a *Answers) move(k reading, start bool) {
	q := &a.asked[k]
	if k == together {
		return
	}
	stays, moves := q.move(a.pairs, start)
	if !moves {
		return
	}
	for _, id := range slices.Sorted(maps.Keys(a.cells)) { // free slots have an order
		c := a.cells[id]
		c.leave(k, q, stays)
		if c.idle() {
			delete(a.cells, id)
		}
	}
	q.choose()
	clear(a.order)
	a.order = a.order[:0]
	a.linked.forget(a)
}

// leave gives up the questions of a reading but for those that stay.
func (c *cell) leave(k reading, q *questions, stays map[int32]bool) {
	drop := func(s *int32) {
		if *s >= 0 && !stays[*s] {
			q.release(*s)
			*s = -1
		}
	}
	drop(&c.slots[k])
	switch k {
	case character:
		left := false
		for _, places := range [2]*[]int32{&c.front, &c.back} {
			for i := range *places {
				drop(&(*places)[i])
				left = left || (*places)[i] >= 0
			}
		}
		if !left {
			c.front, c.back = nil, nil
		}
	case numberBin:
		if c.slots[k] < 0 && c.slots[residue] < 0 {
			c.warm, c.edges = nil, nil
		}
	}
}

// idle reports whether no question is about a cell.
func (c *cell) idle() bool {
	for _, s := range c.slots {
		if s >= 0 {
			return false
		}
	}
	return c.front == nil
}

func (r *result) clear() {
	r.score = 0
	for k := range r.answers {
		r.answers[k] = r.answers[k][:0]
	}
	clear(r.texts) // they hold memory of results
	clear(r.numbers)
	r.seen, r.numbers, r.texts, r.bits = r.seen[:0], r.numbers[:0], r.texts[:0], r.bits[:0]
	r.present = presence{}
}

// Size is about how many bytes of memory the answers take.
func (a *Answers) Size() int {
	n := 12*len(a.seen.marks) + a.values.size() + 16*cap(a.order)
	for k := range a.asked {
		n += a.asked[k].size()
	}
	for _, c := range a.cells {
		n += 200 + 40*(cap(c.warm)+cap(c.edges)) + len(c.first) + 4*(cap(c.front)+cap(c.back))
	}
	return n
}

// Best returns what the best question reads, and of which column; empty if there is none, and Beside if it is about no
// single column.
func (a *Answers) Best() (what string, column int) {
	var top float32
	column = Beside
	for k := range a.asked {
		q := &a.asked[k]
		if g := q.gain(); g > top {
			top, what, column = g, q.name, a.columnOf(reading(k), q.leads[0])
		}
	}
	if a.values.gain > top {
		what, column = "values in any row", Beside
	}
	return what, column
}

// best is the reading with the best question.
func (a *Answers) best() (best reading) {
	for k := range a.asked {
		if a.asked[k].gain() > a.asked[best].gain() {
			best = reading(k)
		}
	}
	return best
}

// Fine reports whether the best question is about the digits or the characters of numbers with more digits than those of a
// float64 are certain.
func (a *Answers) Fine() bool {
	best := a.best()
	if best != character && best != residue || a.values.gain > a.asked[best].gain() {
		return false
	}
	c := a.cellOf(best, a.asked[best].leads[0])
	return c != nil && c.fine
}

// Form reports whether the best question is about a part of a text or of what the server says, and Said about the latter.
func (a *Answers) Form() (form, said bool) {
	best := a.best()
	if q := &a.asked[best]; len(q.leads) > 0 && q.gain() >= a.values.gain {
		if c := a.cellOf(best, q.leads[0]); c != nil {
			said = c.id == ofMessage || c.parent == ofMessage
			return said || c.parent != 0 || c.text, said
		}
	}
	return false, false
}

// columnOf returns the column that a question is about.
func (a *Answers) columnOf(k reading, slot int32) int {
	if c := a.cellOf(k, slot); c != nil {
		return int(c.column)
	}
	return Beside
}

// cellOf returns the cell that a question is about, nil for a pair of cells.
func (a *Answers) cellOf(k reading, slot int32) *cell {
	if k == together {
		return nil
	}
	at := slot - slot%int32(a.asked[k].block)
	for _, c := range a.cells {
		if c.slots[k] == at || k == character && (slices.Contains(c.front, slot) || slices.Contains(c.back, slot)) {
			return c
		}
	}
	return nil
}
