package score

import (
	"maps"
	"slices"

	"github.com/dpwatch/dpwatch/analysis/internal/bins"
	"github.com/dpwatch/dpwatch/analysis/internal/code"
	"github.com/dpwatch/dpwatch/analysis/internal/event"
	"github.com/dpwatch/dpwatch/analysis/internal/state"
	"github.com/dpwatch/dpwatch/internal/withheld"
)

// repeatScore is a result that was seen before in one world only.
var repeatScore = &kind{
	name: "repeat", make: func(int) statistic { return repeated{} }, where: everyResult,
	single: .02, several: .03, views: []event.View{event.Sorted}, prior: SupportPrior, keeps: true, looksBack: true, event: RepeatEvent, whole: true,
	phrase: publicPhrase("an exact repeat of an earlier answer"),
}

type repeated struct{ memoryless }

func (repeated) score(r *Result) code.Code { return r.world }

// learn starts the next table. Its bins are given, not learned.
func (repeated) learn(_ *Input, s *Series) {
	if s.Table != nil {
		s.carry()
		return
	}
	s.Binner = bins.Binner{Categories: []code.Label{onD0Only, onD1Only}}
	s.Table = event.NewTable(1, s.Binner.Bins())
	s.recount()
}

func (repeated) words(*Input, *Series, uint64) withheld.Text {
	return withheld.Public("a result seen before in that world alone")
}

// Repeats keeps hashes of whole results: in which world a result was seen before, and how many come more than once. It
// keeps a sample of the different results: those whose hash ends in so many zero bits, one more whenever there are too
// many. So a result in the sample has been counted from the beginning, however many others there are.
type Repeats struct {
	seen      map[uint64][2]int32 // how often, per world
	different [2]int              // per world: results that are kept
	Echoes    [2]int              // per world, of the sample: results with a number that repeat an earlier one
	Alone     [2]int              // per world, of the sample: different results with a number that came more than once there, and never in the other world
	Common    int                 // of the sample: different results with a number that came in both worlds, more than once in one of them
	Shared    int                 // of the sample: different results with a number that came in both worlds
	thinned   uint8               // the zero bits
}

// maxRepeats is the most results of a world that are kept.
const maxRepeats = 1 << 16

// withNumber is the bit of a key that says that the result holds a number.
const withNumber = 1 << 63

// keyOf spreads a hash over all bits (the finalizer of MurmurHash3). It leaves the bit withNumber free.
func keyOf(hash uint64) uint64 {
	hash = (hash ^ hash>>33) * 0xFF51AFD7ED558CCD
	hash = (hash ^ hash>>33) * 0xC4CEB9FE1A85EC53
	return (hash ^ hash>>33) &^ withNumber
}

// add counts a result of a world.
func (r *Repeats) add(world int, hash uint64, number bool) {
	key := keyOf(hash)
	if key&(1<<r.thinned-1) != 0 {
		return
	}
	if number {
		key |= withNumber
	}
	if r.seen == nil {
		r.seen = map[uint64][2]int32{}
	}
	n := r.seen[key]
	r.different[world] += code.Bit(n[world] == 0)
	if number {
		r.Echoes[world] += code.Bit(n[world] > 0)
		r.classify(n, -1)
	}
	if n[world] < 1<<30 {
		n[world]++
		r.seen[key] = n
	}
	if number {
		r.classify(n, 1)
	}
	for r.different[world] >= maxRepeats {
		r.thin()
	}
}

// classify adds by to the number of results of the kind of one that came so often on D0 and D1.
func (r *Repeats) classify(n [2]int32, by int) {
	r.Shared += by * code.Bit(min(n[0], n[1]) > 0)
	switch {
	case max(n[0], n[1]) < 2:
	case n[1] == 0:
		r.Alone[0] += by
	case n[0] == 0:
		r.Alone[1] += by
	default:
		r.Common += by
	}
}

// thin drops about half of the kept results.
func (r *Repeats) thin() {
	r.thinned++
	r.different, r.Echoes, r.Alone, r.Common, r.Shared = [2]int{}, [2]int{}, [2]int{}, 0, 0
	maps.DeleteFunc(r.seen, func(key uint64, n [2]int32) bool {
		if key&(1<<r.thinned-1) != 0 {
			return true
		}
		for w, n := range n {
			r.different[w] += code.Bit(n > 0)
			if key&withNumber != 0 && n > 0 {
				r.Echoes[w] += int(n) - 1
			}
		}
		if key&withNumber != 0 {
			r.classify(n, 1)
		}
		return false
	})
}

// The categories of repeatScore.
const (
	onD0Only = code.FirstText + iota
	onD1Only
	elsewhere
)

// recalled are the codes of what a result repeats.
type recalled struct {
	world code.Code // the world in which it was seen before
	rare  code.Code // the same of a result with a number: once or more often
}

// recall returns where a result was seen before.
func (r *Repeats) recall(hash uint64) recalled {
	key := keyOf(hash)
	with, without := r.seen[key|withNumber], r.seen[key]
	c := recalled{code.Category(elsewhere), rareCode(with)}
	switch on0, on1 := with[0]+without[0] > 0, with[1]+without[1] > 0; {
	case on0 && !on1:
		c.world = code.Category(onD0Only)
	case on1 && !on0:
		c.world = code.Category(onD1Only)
	}
	return c
}

// State describes what is remembered.
func (r *Repeats) State(c *state.Codec) {
	state.Num(c, &r.thinned)
	c.Check(r.thinned < 64)
	for w := range r.different {
		state.Num(c, &r.Echoes[w])
		var keys []uint64
		for k, n := range r.seen {
			if n[w] > 0 {
				keys = append(keys, k)
			}
		}
		slices.Sort(keys)
		state.List(c, &keys, func(k *uint64) {
			c.U64(k)
			n := r.seen[*k]
			state.Num(c, &n[w])
			c.Check(n[w] > 0)
			if c.Reading && c.Err == nil {
				if r.seen == nil {
					r.seen = map[uint64][2]int32{}
				}
				r.seen[*k] = n
				r.different[w]++
			}
		})
		c.Check(r.Echoes[w] >= 0 && r.different[w] <= maxRepeats)
	}
	if c.Reading {
		for key, n := range r.seen {
			if key&withNumber != 0 {
				r.classify(n, 1)
			}
		}
	}
}

// Len returns the number of results that are remembered.
func (r *Repeats) Len() int { return len(r.seen) }
