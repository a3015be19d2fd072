package exact

import (
	"slices"

	"github.com/dpwatch/dpwatch/internal/outcome"
)

// Seeds of ids and hashes, by what they are of.
const (
	ofNames = iota + 1
	ofShape
	ofRows
	ofSequence
	ofBag
	ofOrder
	ofMessage
	ofState
	ofKey
	ofCell
	ofNumber
	ofWord
	ofAggregate
	ofCount
	ofKind
	ofSkeleton
	ofPair
)

// ofValue spreads hashes before they are added up.
const ofValue = 0x9E3779B97F4A7C15

const (
	keyShare   = .7  // of the values of a column that come equally often in two results: the column tells rows apart
	orderChunk = 16  // rows whose order is one question
	maxKeyRows = 512 // rows of a result that keys are learned from
)

// learnKeys finds the columns that tell rows apart: each of their values comes equally often in most of the results.
func (a *Answers) learnKeys(first [][2]*outcome.Outcome) {
	var all []*outcome.Outcome
	for _, p := range first {
		for _, o := range p {
			if len(o.Rows) > 1 {
				all = append(all, o)
			}
		}
	}
	if len(all) < len(first) || len(all) == 0 { // half of the results
		return
	}
	for c := range all[0].Rows[0] {
		same, n := 0, 0
		var counts []map[uint64]int
		for _, o := range all {
			m := map[uint64]int{}
			for _, row := range o.Rows[:min(len(o.Rows), maxKeyRows)] {
				if c < len(row) {
					m[row[c].Hash()]++
				}
			}
			counts = append(counts, m)
		}
		for i := 1; i < len(counts); i += 2 {
			for _, p := range [2][2]map[uint64]int{{counts[i-1], counts[i]}, {counts[i], counts[i-1]}} {
				for h, k := range p[0] {
					n++
					if p[1][h] == k {
						same++
					}
				}
			}
		}
		if n > 0 && float64(same) >= keyShare*float64(n) {
			a.keys = append(a.keys, c)
		}
	}
	if len(a.keys) == len(all[0].Rows[0]) && len(a.keys) > 1 { // every column recurs: one of them may be the answer
		a.keys = a.keys[:len(a.keys)-1]
	}
}

// read reads a result.
func (a *Answers) read(o *outcome.Outcome, r *result) {
	a.at = 0
	a.stamp++
	for k := range a.asked {
		a.asked[k].cells = 0
	}
	a.readBeside(o, r)
	width := 0
	if len(o.Rows) > 0 {
		width = len(o.Rows[0])
	}
	several := len(o.Rows) > 1
	keyed := len(a.keys) > 0 && width > 0 && a.keys[len(a.keys)-1] < width
	anywhere := several && (a.depth == whole || len(a.values.leads) > 0)
	a.hashes = a.hashes[:0]
	for _, row := range o.Rows {
		for c := range row {
			h := uint64(0) // for later
			if anywhere || keyed && slices.Contains(a.keys, c) {
				h = a.hashOf(&row[c])
			}
			a.hashes = append(a.hashes, h)
		}
	}
	if several && a.depth == whole {
		a.readColumns(o, r, width)
	}
	a.rows.begin()
	place := outcome.Mix(ofCell, uint64(width))
	left := a.hashes
	for n, row := range o.Rows {
		hashes := left[:len(row)]
		left = left[len(row):]
		key := uint64(n)
		if keyed {
			key = ofKey
			for _, c := range a.keys {
				if c < len(row) {
					key = outcome.Mix(key, hashes[c])
				}
			}
			if k := a.rows.next(key); k > 0 {
				key = outcome.Mix(key, uint64(k))
			}
			a.ordering = append(a.ordering, key)
		}
		for c := range row {
			v := &row[c]
			if anywhere {
				r.present.set(hashes[c] + uint64(c)*ofValue)
			}
			if !keyed || !slices.Contains(a.keys, c) {
				a.readValue(outcome.Mix(place+uint64(c), key), c, v, hashes[c], !several, r)
			}
		}
	}
	if keyed && several && a.depth == whole {
		a.readOrder(r)
	}
	a.ordering = a.ordering[:0]
	a.linked.read(a, r)
	for k := range a.asked {
		q := &a.asked[k]
		q.wanted = max(q.wanted, q.cells)
	}
}

// readBeside reads what comes with the rows: names and types of columns, errors, notices, the number of rows.
func (a *Answers) readBeside(o *outcome.Outcome, r *result) {
	names := uint64(ofNames)
	for i := range o.Columns {
		names = outcome.Mix(outcome.HashText(o.Columns[i].Name, names), uint64(o.Columns[i].Type))
	}
	a.ask(ofNames, names, r)
	a.ask(ofShape, uint64(len(o.Rows))<<16|uint64(len(o.Columns)), r)
	if o.SQLState != "" {
		a.ask(ofState, outcome.HashText(o.SQLState, 0), r)
	}
	if o.Message != "" {
		v := outcome.Value{Kind: outcome.Text, Text: o.Message}
		a.readValue(ofMessage, Beside, &v, v.Hash(), true, r)
	}
}

// readColumns reads every column of several rows as a whole, in order and in any order, and so all rows.
func (a *Answers) readColumns(o *outcome.Outcome, r *result, width int) {
	a.ordering = append(a.ordering[:0], make([]uint64, 2*width)...)
	sequences, bags := a.ordering[:width], a.ordering[width:2*width]
	rows, left := uint64(0), a.hashes
	for _, row := range o.Rows {
		all := uint64(0)
		for c, h := range left[:len(row)] {
			all = outcome.Mix(all, h)
			if c < width {
				sequences[c] = outcome.Mix(sequences[c], h)
				bags[c] += h * ofValue
			}
		}
		left = left[len(row):]
		rows += all
	}
	a.ask(ofRows, rows, r)
	for c := range width {
		if !a.unordered {
			a.ask(outcome.Mix(ofSequence, uint64(c)), sequences[c], r)
		}
		a.ask(outcome.Mix(ofBag, uint64(c)), bags[c], r)
	}
	a.ordering = a.ordering[:0]
}

// readOrder reads the order of the keys, as a whole and in chunks.
func (a *Answers) readOrder(r *result) {
	if a.unordered {
		return
	}
	all := uint64(0)
	for i := 0; i < len(a.ordering); i += orderChunk {
		chunk := uint64(0)
		for _, key := range a.ordering[i:min(i+orderChunk, len(a.ordering))] {
			chunk = outcome.Mix(chunk, key)
		}
		all = outcome.Mix(all, chunk)
		a.ask(outcome.Mix(ofOrder, uint64(i)+1), chunk, r)
	}
	a.ask(ofOrder, all, r)
}

// find returns the cell with an id if a question is about it.
func (a *Answers) find(id uint64) *cell {
	at := a.at
	a.at++
	if at < len(a.order) && a.order[at].id == id {
		return a.order[at].c
	}
	c := a.cells[id]
	for at >= len(a.order) {
		a.order = append(a.order, place{})
	}
	a.order[at] = place{id, c}
	return c
}

// found returns a cell, which is made if it is in the slice of one of the readings.
func (a *Answers) found(id uint64, column int, of ...reading) *cell {
	if c := a.find(id); c != nil {
		return c
	}
	for _, k := range of {
		if q := &a.asked[k]; q.active(id) && !q.isFull() {
			c := &cell{id: id, column: int32(column)}
			for k := range c.slots {
				c.slots[k] = -1
			}
			a.cells[id], a.order[a.at-1].c = c, c
			return c
		}
	}
	return nil
}

// slot returns the slot of a cell in a reading, -1 if it is not asked about.
func (a *Answers) slot(c *cell, k reading) int32 {
	q := &a.asked[k]
	q.cells += q.block
	if c.slots[k] < 0 && q.active(c.id) {
		c.slots[k] = q.take()
	}
	return c.slots[k]
}

// answer notes an answer.
func (r *result) answer(k reading, slot int32, code int) {
	r.answers[k] = append(r.answers[k], answer{slot, uint8(code)})
}

// ask asks whether a value was seen before as the answer to a question.
func (a *Answers) ask(id, value uint64, r *result) {
	if c := a.found(id, Beside, seenBefore); c != nil {
		if c.hot || a.depth == whole {
			a.recall(c, value, r)
		}
	} else {
		a.asked[seenBefore].cells++
	}
}

// fresh is the number of answers without a repeat after which only one in 16 values is kept.
const (
	freshAnswers = 256
	freshBits    = 15
)

// recall answers whether a value of a cell was seen before. asked is false where it is not known.
func (a *Answers) recall(c *cell, value uint64, r *result) (seen uint8, asked bool) {
	slot := a.slot(c, seenBefore)
	if slot < 0 {
		return 0, false
	}
	q := &a.asked[seenBefore]
	h := outcome.Mix(c.id, value)
	if n := q.totals[0][slot] + q.totals[1][slot]; n >= freshAnswers && value&freshBits != 0 {
		if at := int(slot) * q.answers; q.counts[0][at]+q.counts[1][at] == n {
			return 0, false
		}
	}
	seen = a.seen.recall(h)
	r.answer(seenBefore, slot, int(seen))
	r.seen = append(r.seen, h)
	return seen, true
}

// readValue reads the value of a cell. alone is set if it is not one of several rows.
func (a *Answers) readValue(id uint64, column int, v *outcome.Value, hash uint64, alone bool, r *result) {
	c := a.found(id, column, seenBefore, numberBin, character, residue)
	if c == nil {
		a.miss(v)
		return
	}
	if !c.hot && a.depth != whole && !(alone && len(a.values.leads) > 0) {
		return
	}
	c.fine, c.text = v.Kind == outcome.Number && fine(v), v.Kind == outcome.Text
	digits := c.fine && a.coarse
	seen, asked := uint8(0), false
	if hash == 0 {
		hash = a.hashOf(v)
	}
	if !digits {
		seen, asked = a.recall(c, hash, r)
	}
	switch v.Kind {
	case outcome.Number:
		a.readNumber(c, v.Num, v.Text, !digits, r)
		if v.Text != "" && !digits {
			a.readCharacters(c, v.Text, r)
		}
	case outcome.Text:
		a.readText(c, column, v.Text, seen, asked, alone, r)
	default:
		if c.slots[numberBin] >= 0 {
			r.answer(numberBin, c.slots[numberBin], notANumber)
		}
		a.readCharacters(c, "\x00", r)
	}
	a.readBit(c, v, r)
}

// miss counts the questions about a cell that is not asked about.
func (a *Answers) miss(v *outcome.Value) {
	a.asked[seenBefore].cells++
	a.asked[character].cells += 2*len(v.Text) + 1
	if v.Kind == outcome.Number {
		a.asked[numberBin].cells++
		a.asked[residue].cells += len(moduli)
	}
}

// readNumber reads a number; its lowest digits only if all is set.
func (a *Answers) readNumber(c *cell, x float64, text string, all bool, r *result) {
	if x != x {
		if c.slots[numberBin] >= 0 {
			r.answer(numberBin, c.slots[numberBin], notANumber)
		}
		return
	}
	n := number{x: x}
	if all {
		n = numberOf(x, text)
	}
	if slot := a.slot(c, numberBin); slot >= 0 {
		if len(c.edges) > 0 {
			r.answer(numberBin, slot, int(c.bin(n)))
		} else {
			r.numbers = append(r.numbers, waiting{c, n})
		}
	}
	if !all || text == "" {
		return
	}
	if slot := a.slot(c, residue); slot >= 0 {
		if left, ok := remainder(text); ok {
			for i, m := range moduli {
				r.answer(residue, slot+int32(i), left%m)
			}
		}
	}
}
