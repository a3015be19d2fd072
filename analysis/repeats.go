package analysis

import (
	"maps"

	"github.com/dpwatch/dpwatch/analysis/internal/bins"
	"github.com/dpwatch/dpwatch/analysis/internal/book"
	"github.com/dpwatch/dpwatch/analysis/internal/code"
	"github.com/dpwatch/dpwatch/analysis/internal/event"
	"github.com/dpwatch/dpwatch/internal/withheld"
)

// repeatScore is a result that was seen before in one world only.
var repeatScore = &kind{
	name: "repeat", make: func(int) statistic { return repeated{} }, where: everyResult,
	single: .02, several: .03, views: []event.View{event.Sorted}, prior: supportPrior, keeps: true, looksBack: true, event: RepeatEvent, whole: true,
}

type repeated struct{ memoryless }

func (repeated) score(r *result) code.Code { return r.world }

// learn starts the next table. Its bins are given, not learned.
func (repeated) learn(_ *Audit, s *series, _ *book.Epoch) {
	if s.table != nil {
		s.carry()
		return
	}
	s.binner = bins.Binner{Categories: []code.Label{onD0Only, onD1Only}}
	s.table = event.NewTable(1, s.binner.Bins())
	s.recount()
}

func (repeated) words(*Audit, *series, uint64) withheld.Text {
	return withheld.Public("a result seen before in that world alone")
}

// repeats keeps hashes of whole results: in which world a result was seen before, and how many come more than once. It keeps a
// sample of the different results: those whose hash ends in so many zero bits, one more whenever there are too many. So a
// result in the sample has been counted from the beginning, however many others there are.
type repeats struct {
	seen      map[uint64][2]int32 // how often, per world
	different [2]int              // per world: results that are kept
	echoes    [2]int              // per world, of the sample: results with a number that repeat an earlier one
	twice     [2]int              // per world, of the sample: different results with a number that came more than once
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
func (r *repeats) add(world int, hash uint64, number bool) {
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
		r.echoes[world] += code.Bit(n[world] > 0)
		r.twice[world] += code.Bit(n[world] == 1)
	}
	if n[world] < 1<<30 {
		n[world]++
		r.seen[key] = n
	}
	for r.different[world] >= maxRepeats {
		r.thin()
	}
}

// thin drops about half of the kept results.
func (r *repeats) thin() {
	r.thinned++
	r.different, r.echoes, r.twice = [2]int{}, [2]int{}, [2]int{}
	maps.DeleteFunc(r.seen, func(key uint64, n [2]int32) bool {
		if key&(1<<r.thinned-1) != 0 {
			return true
		}
		for w, n := range n {
			r.different[w] += code.Bit(n > 0)
			if key&withNumber != 0 && n > 0 {
				r.echoes[w] += int(n) - 1
				r.twice[w] += code.Bit(n > 1)
			}
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
func (r *repeats) recall(hash uint64) recalled {
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
