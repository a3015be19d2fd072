package analysis

import (
	"math"
	"slices"

	"github.com/dpwatch/dpwatch/analysis/internal/code"
)

// slotEstimate is BucketEstimate for the kept codes of a slot: equal-width buckets over the pooled range of its
// numbers, and one bucket per category. An update counts the codes since the last one, and all codes again if the range
// has grown or the past was thinned; the range of n values grows about ln n times.
type slotEstimate struct {
	counted    int // kept pairs that are in the counts
	stride     int // of the kept pairs
	lo, hi     float64
	numbers    [2][]int
	categories []uint16 // ascending
	words      [2][]int // per category
}

// update counts what is new in the past, and returns the estimate.
func (e *slotEstimate) update(past [2][]code.Code, stride, buckets int, delta float64, minCount int) float64 {
	if e.counted == 0 || e.stride != stride || e.outgrown(past) {
		e.restart(past, stride, buckets)
	}
	for w, codes := range past {
		for _, c := range codes[e.counted:] {
			if code.IsNumber(c) {
				e.numbers[w][bucketOf(c, e.lo, e.hi, buckets)]++
			} else {
				e.words[w][e.place(code.CategoryOf(c))]++
			}
		}
	}
	e.counted = len(past[0])
	c0 := append(slices.Clip(e.numbers[0]), e.words[0]...)
	c1 := append(slices.Clip(e.numbers[1]), e.words[1]...)
	return BucketEstimate(c0, c1, delta, minCount)
}

// outgrown reports whether a new number is beyond the range.
func (e *slotEstimate) outgrown(past [2][]code.Code) bool {
	for _, codes := range past {
		for _, c := range codes[e.counted:] {
			if code.IsNumber(c) && (c < e.lo || c > e.hi) {
				return true
			}
		}
	}
	return false
}

// restart sets the range from the whole past, with nothing counted.
func (e *slotEstimate) restart(past [2][]code.Code, stride, buckets int) {
	*e = slotEstimate{stride: stride, lo: math.Inf(1), hi: math.Inf(-1)}
	for w, codes := range past {
		e.numbers[w] = make([]int, buckets)
		for _, c := range codes {
			if code.IsNumber(c) {
				e.lo, e.hi = min(e.lo, c), max(e.hi, c)
			}
		}
	}
}

// place returns where a category is counted. Categories are ordered by number, not as they came, so that the estimate
// follows from the past alone.
func (e *slotEstimate) place(id uint16) int {
	at, known := slices.BinarySearch(e.categories, id)
	if !known {
		e.categories = slices.Insert(e.categories, at, id)
		for w := range e.words {
			e.words[w] = slices.Insert(e.words[w], at, 0)
		}
	}
	return at
}
