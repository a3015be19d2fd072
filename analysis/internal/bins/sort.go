package bins

import (
	"math"
	"math/bits"
	"slices"
)

// leastRadix is the number of values from which sorting byte by byte is the quicker way.
const leastRadix = 96

// sorter is the memory of a radix sort.
type sorter struct{ from, to []uint64 }

// Sort sorts finite numbers, ascending, as slices.Sort does. It is a radix sort of keys in the order of the numbers:
// the bits of a float64 ascend with its magnitude, so that the sign bit is turned over, and all bits of negatives. The
// bytes from the highest bit on in which keys differ are sorted, lowest first. Few keys are equal in all of these;
// insertion puts them in order.
func (r *sorter) Sort(values []float64) {
	n := len(values)
	if n < leastRadix {
		slices.Sort(values)
		return
	}
	r.from, r.to = slices.Grow(r.from[:0], n)[:n], slices.Grow(r.to[:0], n)[:n]
	const sign = 1 << 63
	differ := uint64(0)
	for i, x := range values {
		u := math.Float64bits(x)
		u ^= uint64(int64(u)>>63) | sign
		r.from[i] = u
		differ |= u ^ r.from[0]
	}
	var counts [3][256]uint32 // per byte, the lowest first
	lowest := max(0, bits.Len64(differ)-8*len(counts))
	for _, u := range r.from {
		for b := range counts {
			counts[b][u>>(lowest+8*b)&0xFF]++
		}
	}
	for b := range counts {
		at := uint32(0)
		next := &counts[b]
		for i, k := range next {
			next[i] = at
			at += k
		}
		for _, u := range r.from {
			k := &next[u>>(lowest+8*b)&0xFF]
			r.to[*k] = u
			*k++
		}
		r.from, r.to = r.to, r.from
	}
	r.insert()
	for i, u := range r.from {
		if u&sign != 0 {
			u ^= sign
		} else {
			u = ^u
		}
		values[i] = math.Float64frombits(u)
	}
}

// insert sorts keys that are nearly sorted. Where it takes too many moves, they are not.
func (r *sorter) insert() {
	moves := 8 * len(r.from)
	for i, u := range r.from {
		at := i
		for ; at > 0 && r.from[at-1] > u; at-- {
			r.from[at] = r.from[at-1]
		}
		r.from[at] = u
		if moves -= i - at; moves < 0 {
			slices.Sort(r.from)
			return
		}
	}
}
