package event

import (
	"math"

	"github.com/dpwatch/dpwatch/analysis/internal/eprocess"
)

// By how much (in squared studentised gaps) more freedom in the choice of events must gain to be used: freedom of
// choice gains about as much on noise.
const (
	halfLineBonus = 8 // two half-lines chosen freely, over two of equal pooled rank
	foldBonus     = 4 // the tails against the centre, over the same
)

// preferSimple returns the two half-lines of equal pooled rank with the strongest evidence together, unless the tails
// and the centre, or the events given, have much stronger evidence.
func preferSimple(h eprocess.Null, t *Table, d0, d1 candidate) (candidate, candidate) {
	top := max(d0.z2, 0) + max(d1.z2, 0) - halfLineBonus
	var m mirrored
	for i := range t.Numeric / 2 {
		m.take(t, i, t.Numeric-1-i)
		low := 0 // the world whose values are the lower ones
		z2, reverse := m.together(h, t.Pairs, 0), m.together(h, t.Pairs, 1)
		if z2 == reverse {
			continue // neither way round is the better one
		}
		if reverse > z2 {
			z2, low = reverse, 1
		}
		if z2 > top {
			top = z2
			d0, d1 = m.candidates(h, t.Pairs, low)
		}
	}
	tails := bestFold(h, t, 0)
	centre := bestFold(h, t, 1)
	if max(tails.z2, 0)+max(centre.z2, 0)-foldBonus > top {
		return tails, centre
	}
	return d0, d1
}

// bestFold returns the event among tails and centres with the strongest evidence for a world.
func bestFold(h eprocess.Null, t *Table, heavy int) candidate {
	p, q := t.Before[heavy], t.Before[1-heavy]
	var all, set uint64
	var allP, allQ, kp, kq int32
	for b := range t.Numeric {
		all, allP, allQ = all|1<<b, allP+p[b], allQ+q[b]
	}
	best := candidate{z2: math.Inf(-1)}
	for i, j := 0, t.Numeric-1; i < j; i, j = i+1, j-1 {
		set |= 1<<i | 1<<j
		kp, kq = kp+p[i]+p[j], kq+q[i]+q[j]
		best = best.or(candidate{set, studentised(h, t.Pairs, kp, kq)})
		if all != set {
			best = best.or(candidate{all &^ set, studentised(h, t.Pairs, allP-kp, allQ-kq)})
		}
	}
	return best
}

// mirrored are two half-lines of equal pooled rank.
type mirrored struct {
	set [2]uint64
	k   [2][2]int32 // half-line, world
}

// take adds one bin to each half-line.
func (m *mirrored) take(t *Table, lower, upper int) {
	for half, b := range [2]int{lower, upper} {
		m.set[half] |= 1 << b
		m.k[half][0] += t.Before[0][b]
		m.k[half][1] += t.Before[1][b]
	}
}

// together is the studentised gap, squared, with its sign, of both half-lines as one event of 2n trials.
func (m *mirrored) together(h eprocess.Null, pairs, low int) float64 {
	return studentised(h, 2*pairs, m.k[0][low]+m.k[1][1-low], m.k[0][1-low]+m.k[1][low])
}

func (m *mirrored) candidates(h eprocess.Null, pairs, low int) (d0, d1 candidate) {
	return candidate{m.set[low], studentised(h, pairs, m.k[low][0], m.k[low][1])},
		candidate{m.set[1-low], studentised(h, pairs, m.k[1-low][1], m.k[1-low][0])}
}
