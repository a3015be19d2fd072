package analysis

import "maps"

// repeats remembers whole results, to know in which world one was seen before and how many come more than once. It keeps a
// sample of the different results: those whose hash ends in so many zero bits, one more whenever there are too many. So a
// result in the sample was counted from the beginning, however many others came.
type repeats struct {
	seen    [2]map[uint64]int32
	echoes  [2]int // per world, of the sample: results with a number that repeat an earlier one
	twice   [2]int // per world, of the sample: different results with a number that came more than once
	thinned uint8  // the zero bits
}

// maxRepeats is the most results of a world that are remembered.
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
	if r.seen[world] == nil {
		r.seen[world] = map[uint64]int32{}
	}
	n := r.seen[world][key]
	if number {
		r.echoes[world] += b2i(n > 0)
		r.twice[world] += b2i(n == 1)
	}
	if n < 1<<30 {
		r.seen[world][key] = n + 1
	}
	for len(r.seen[world]) >= maxRepeats {
		r.thin()
	}
}

// thin drops about half of the results that are remembered.
func (r *repeats) thin() {
	r.thinned++
	for w := range r.seen {
		r.echoes[w], r.twice[w] = 0, 0
		maps.DeleteFunc(r.seen[w], func(key uint64, n int32) bool {
			if key&(1<<r.thinned-1) != 0 {
				return true
			}
			if key&withNumber != 0 {
				r.echoes[w] += int(n) - 1
				r.twice[w] += b2i(n > 1)
			}
			return false
		})
	}
}

// The categories of repeatScore.
const (
	onD0Only = firstText + iota
	onD1Only
	elsewhere
)

// code says in which world a result was seen before.
func (r *repeats) code(hash uint64) code {
	key := keyOf(hash)
	seen := func(w int) bool { return r.seen[w][key]+r.seen[w][key|withNumber] > 0 }
	switch on0, on1 := seen(0), seen(1); {
	case on0 && !on1:
		return category(onD0Only)
	case on1 && !on0:
		return category(onD1Only)
	}
	return category(elsewhere)
}
