package exact

import (
	"strings"

	"github.com/dpwatch/dpwatch/internal/outcome"
)

// chunk is the number of characters that are in one slice.
const chunk = 32

// readCharacters reads the characters of a text by their place from both ends, and its length.
func (a *Answers) readCharacters(c *cell, s string, r *result) {
	q := &a.asked[character]
	a.longest = max(a.longest, len(s))
	if c.first == "" {
		if !q.active(c.id) && len(s) <= chunk {
			q.cells += 2*len(s) + 1
			return
		}
		c.first = strings.Clone(s)
		c.low = int32(len(s)) / 2 // of one text, the beginning and the end are all of it
		c.high = int32(len(s)) - c.low
	}
	r.texts = append(r.texts, text{c, s})
	low, high := c.common(s)
	q.cells += 2*(len(s)-low-high) + 1
	if slot := a.lengthSlot(c); slot >= 0 {
		r.answer(character, slot, len(s)&31)
	}
	a.readPlaces(c, &c.front, s, low, len(s)-high, false, r)
	a.readPlaces(c, &c.back, s, high, len(s)-low, true, r)
}

func (a *Answers) lengthSlot(c *cell) int32 {
	if q := &a.asked[character]; c.slots[character] < 0 && q.active(c.id) {
		c.slots[character] = q.take()
	}
	return c.slots[character]
}

// readPlaces reads the characters between two places, counted from the beginning or from the end.
func (a *Answers) readPlaces(c *cell, slots *[]int32, s string, from, to int, backward bool, r *result) {
	q := &a.asked[character]
	to = min(to, maxPlaces)
	for i := from; i < to; {
		end := min(i-i%chunk+chunk, to)
		id := c.id + uint64(i/chunk)<<33
		if backward && i >= chunk {
			id += 1 << 32
		}
		active := q.active(id)
		if !active && i >= len(*slots) {
			i = end
			continue
		}
		for ; i < end; i++ {
			if i >= len(*slots) {
				if !active {
					break
				}
				for len(*slots) <= i {
					*slots = append(*slots, -1)
				}
			}
			slot := (*slots)[i]
			if slot < 0 {
				if !active {
					continue
				}
				if slot = q.take(); slot < 0 {
					continue
				}
				(*slots)[i] = slot
			}
			b := s[i]
			if backward {
				b = s[len(s)-1-i]
			}
			r.answer(character, slot, int(b&31))
		}
		i = end
	}
}

// texts counts the texts of a column: those that were looked up, those of them that were never seen before, and of these
// those that differ from earlier ones in nothing but their numbers.
type texts struct{ all, fresh, known int }

// Of what share of fresh texts a column is not read, and of how many texts at least.
const (
	unreadShare = .05
	leastTexts  = 64
	firstTexts  = 32 // pairs before which none is counted
	wordLength  = 12 // of a text from which its words are values
)

// readText reads a text: its characters, its numbers and its words.
func (a *Answers) readText(c *cell, column int, s string, seen uint8, asked, alone bool, r *result) {
	a.readCharacters(c, s, r)
	a.readKinds(c, column, s, r)
	a.words.begin()
	words := alone && len(s) > wordLength
	var all aggregate
	skeleton := scan(s, func(word uint64, digits string) {
		x, ok := outcome.ParseNumber(digits)
		if ok {
			all.add(x)
		}
		n := a.words.next(word)
		sub := a.found(outcome.Mix(outcome.Mix(c.id, ofNumber), outcome.Mix(word, uint64(n))), column, numberBin, residue)
		if sub == nil {
			a.asked[numberBin].cells++
			a.asked[residue].cells += len(moduli)
			return
		}
		sub.parent = c.id
		if ok {
			a.readNumber(sub, x, digits, true, r)
			a.readBit(sub, &outcome.Value{Kind: outcome.Number, Num: x, Text: digits}, r)
		}
	}, func(word uint64) {
		if words {
			r.present.set(outcome.Mix(word, uint64(column)<<8|ofWord))
		}
	})
	a.readAggregates(c, column, &all, r)
	if asked && a.pairs >= firstTexts {
		a.noteText(column, skeleton, seen, r)
	}
}

// aggregate is what the numbers of a text, which may come in any order, have together.
type aggregate struct {
	n                          int
	last, least, greatest, sum float64
}

func (g *aggregate) add(x float64) {
	if g.n++; g.n == 1 {
		g.least, g.greatest = x, x
	}
	g.last, g.sum = x, g.sum+x
	g.least, g.greatest = min(g.least, x), max(g.greatest, x)
}

// readKinds reads how many capital letters and how many digits a text has.
func (a *Answers) readKinds(c *cell, column int, s string, r *result) {
	capitals, digits := 0, 0
	for i := range len(s) {
		switch {
		case 'A' <= s[i] && s[i] <= 'Z':
			capitals++
		case isDigit(s[i]):
			digits++
		}
	}
	for i, n := range [...]int{capitals, digits} {
		a.readCount(c, column, outcome.Mix(ofKind, uint64(i)), n, r)
	}
}

// readCount reads a number of things in a text.
func (a *Answers) readCount(c *cell, column int, what uint64, n int, r *result) {
	sub := a.found(outcome.Mix(c.id, what), column, character)
	if sub == nil {
		a.asked[character].cells++
		return
	}
	sub.parent = c.id
	if slot := a.lengthSlot(sub); slot >= 0 {
		r.answer(character, slot, n&31)
	}
}

// readAggregates reads the last, the smallest and the largest of several numbers of a text, their sum, and how many they
// are.
func (a *Answers) readAggregates(c *cell, column int, g *aggregate, r *result) {
	if g.n < 2 {
		return
	}
	a.readCount(c, column, ofCount, g.n, r)
	for i, x := range [...]float64{g.last, g.least, g.greatest, g.sum} {
		sub := a.found(outcome.Mix(c.id, outcome.Mix(ofAggregate, uint64(i))), column, numberBin)
		if sub == nil {
			a.asked[numberBin].cells++
			continue
		}
		sub.parent = c.id
		a.readNumber(sub, x, "", true, r)
	}
}

// noteText counts a text of a column.
func (a *Answers) noteText(column int, skeleton uint64, seen uint8, r *result) {
	for len(a.texts) <= column+1 {
		a.texts = append(a.texts, texts{})
	}
	t := &a.texts[column+1]
	t.all++
	if seen != neverSeen {
		return
	}
	t.fresh++
	h := outcome.Mix(outcome.Mix(ofSkeleton, uint64(column)), skeleton)
	if a.seen.recall(h) != neverSeen {
		t.known++
	}
	r.seen = append(r.seen, h)
}
