package exact

import (
	"math"
	"slices"
	"strings"

	"github.com/dpwatch/dpwatch/internal/outcome"
)

// cell is a place of the answer that comes again in other results: a column of a group, a number in a text after some word,
// the keys of some rows. Its id is a hash of where it is.
type cell struct {
	id     uint64
	parent uint64 // the cell in whose text it is, 0 for none
	column int32
	slots  [readings]int32 // first of its block, -1 for none; of characters the one of the length

	text  bool     // it holds texts
	fine  bool     // it holds numbers of which a float64 may have left the last digits
	warm  []warmed // the first numbers, as long as there are no edges
	edges []number // sorted

	first       string  // the first text
	low, high   int32   // bytes at the beginning and at the end that all texts have in common
	front, back []int32 // slots of characters, by place from the beginning and from the end; -1 for none

	hot  bool       // read in every pair: see depth
	past [2]history // see pairs.go
	now  latest
}

// number is a number with all of its digits.
type number struct {
	x    float64
	text string // empty if x has all digits
}

// longDigits is the number of digits from which a float64 may lack some.
const longDigits = 15

func numberOf(x float64, text string) number {
	n := 0
	for i := range len(text) {
		if isDigit(text[i]) {
			n++
		}
	}
	if n <= longDigits && !strings.ContainsAny(text, "eE") {
		text = ""
	}
	return number{x, text}
}

// warmed is one of the first numbers of a cell, with its world.
type warmed struct {
	number
	world uint8
}

func (n number) compare(m number) int { return outcome.Compare(n.x, n.text, m.x, m.text) }

// Numbers that edges are made of, and which of them, sorted, are edges.
const warmNumbers = 12

var edgeRanks = [...]int{0, 3, 6, 8, warmNumbers - 1}

// edgeCount is the number of edges: the last one is in the middle of the widest gap.
const edgeCount = len(edgeRanks) + 1

// notANumber is the answer of a cell of numbers that holds something else.
const notANumber = edgeCount + 1

// bin returns the number of edges that are not greater than a number.
func (c *cell) bin(n number) uint8 {
	k := uint8(0)
	for _, e := range c.edges {
		if e.x < n.x || e.x == n.x && e.compare(n) <= 0 {
			k++
		}
	}
	return k
}

// learnEdges takes one of the first numbers. Once there are enough for edges, they are answers themselves.
func (c *cell) learnEdges(n number, world int, q *questions) {
	if len(c.edges) > 0 {
		q.learn(world, c.slots[numberBin], c.bin(n))
		return
	}
	n.text = strings.Clone(n.text)
	c.warm = append(c.warm, warmed{n, uint8(world)})
	if len(c.warm) < warmNumbers {
		return
	}
	sorted := slices.SortedFunc(slices.Values(c.warm), func(a, b warmed) int { return a.compare(b.number) })
	for _, rank := range edgeRanks {
		c.edges = append(c.edges, sorted[rank].number)
	}
	gap, at := 0.0, sorted[edgeRanks[len(edgeRanks)/2]].number
	for i, x := range sorted[1:] {
		if d := x.x - sorted[i].x; d > gap && !math.IsInf(d, 0) {
			gap, at = d, number{x: sorted[i].x + d/2}
		}
	}
	c.edges = append(c.edges, at)
	slices.SortFunc(c.edges, number.compare)
	for _, x := range c.warm {
		q.learn(int(x.world), c.slots[numberBin], c.bin(x.number))
	}
	c.warm = nil
}

// What is kept of texts.
const (
	maxPlaces  = 1 << 16 // characters from each end that are asked about
	stripPairs = 4 * warmNumbers
)

// strip shortens what all texts have in common.
func (c *cell) strip(text string) {
	n := min(len(text), len(c.first))
	low, high := min(int(c.low), n), 0
	for low > 0 && text[:low] != c.first[:low] {
		low = shrink(low)
	}
	for high = min(int(c.high), n-low); high > 0 && text[len(text)-high:] != c.first[len(c.first)-high:]; {
		high = shrink(high)
	}
	c.low, c.high = int32(low), int32(high)
}

func shrink(n int) int {
	if n < 64 {
		return n - 1
	}
	return n / 2
}

// common returns how many bytes at both ends are not asked about: those that all texts have in common, none for a text that
// does not have them.
func (c *cell) common(text string) (low, high int) {
	low, high = int(c.low), int(c.high)
	if low+high > len(text) || text[:low] != c.first[:low] || text[len(text)-high:] != c.first[len(c.first)-high:] {
		return 0, 0
	}
	return low, high
}

// ordinals count how often a key came in a result.
type ordinals struct {
	table []ordinal
	turn  uint32
	n     int
}

type ordinal struct {
	key  uint64
	turn uint32
	n    uint32
}

// begin forgets all keys.
func (o *ordinals) begin() { o.turn, o.n = o.turn+1, 0 }

// next returns how often a key came before.
func (o *ordinals) next(key uint64) uint32 {
	if 2*(o.n+1) > len(o.table) {
		old := o.table
		o.table = make([]ordinal, max(16, 2*len(old)))
		for _, e := range old {
			if e.turn == o.turn {
				*o.at(e.key) = e
			}
		}
	}
	e := o.at(key)
	if e.turn != o.turn {
		*e = ordinal{key, o.turn, 0}
		o.n++
	}
	e.n++
	return e.n - 1
}

func (o *ordinals) at(key uint64) *ordinal {
	mask := uint64(len(o.table) - 1)
	for i := key & mask; ; i = (i + 1) & mask {
		if e := &o.table[i]; e.turn != o.turn || e.key == key {
			return e
		}
	}
}

func isDigit(c byte) bool  { return '0' <= c && c <= '9' }
func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' || c >= 0x80 }
