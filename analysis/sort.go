package analysis

import (
	"math"
	"slices"
)

// leastRadix is the number of values from which sorting byte by byte is the quicker way.
const leastRadix = 96

// sorter is the memory of a radix sort.
type sorter struct{ from, to []uint64 }

// sort sorts finite numbers, ascending, as slices.Sort does. It is a radix sort, lowest byte first, of keys in the order of the
// numbers: the bits of a float64 ascend with its magnitude, so that the sign bit is turned over, and all bits of negatives.
func (r *sorter) sort(values []float64) {
	n := len(values)
	if n < leastRadix {
		slices.Sort(values)
		return
	}
	r.from, r.to = slices.Grow(r.from[:0], n)[:n], slices.Grow(r.to[:0], n)[:n]
	const sign = 1 << 63
	var counts [8][256]uint32 // per byte, the lowest first
	for i, x := range values {
		u := math.Float64bits(x)
		u ^= uint64(int64(u)>>63) | sign
		r.from[i] = u
		for b := range counts {
			counts[b][u>>(8*b)&0xFF]++
		}
	}
	for b := range counts {
		next := &counts[b]
		if next[r.from[0]>>(8*b)&0xFF] == uint32(n) {
			continue // the byte is the same in all
		}
		at := uint32(0)
		for i, k := range next {
			next[i] = at
			at += k
		}
		for _, u := range r.from {
			k := &next[u>>(8*b)&0xFF]
			r.to[*k] = u
			*k++
		}
		r.from, r.to = r.to, r.from
	}
	for i, u := range r.from {
		if u&sign != 0 {
			u ^= sign
		} else {
			u = ^u
		}
		values[i] = math.Float64frombits(u)
	}
}
