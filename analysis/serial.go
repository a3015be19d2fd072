package analysis

import (
	"math"

	"github.com/dpwatch/dpwatch/internal/withheld"
)

// serial watches one slot for trials that depend on each other: whether values lie on one side of a threshold is counted
// with the same of the trial before. The threshold is set once, from the past, so that the counts of independent trials
// are those of independent coins, whatever the law.
type serial struct {
	set    bool
	mid    float64
	known  uint16 // texts from this category on came after the threshold was set
	last   [2]uint8
	counts [4][4]int32 // per relation: 2*(earlier trial's side) + (later trial's side)
}

// The relations that are watched, in the order in which trials run.
var relations = [4]string{
	"successive answers on D0",
	"successive answers on D1",
	"the answers on D0 and D1 of one pair",
	"the answers on D1 and the next on D0",
}

// serialFrom is the number of kept pairs from which the threshold is set: the pooled median.
const serialFrom = 32

func (w *serial) start(edges []float64, known int) {
	w.set, w.mid, w.known = true, math.NaN(), uint16(known)
	if len(edges) > 0 {
		w.mid = edges[len(edges)/2]
	}
	w.last = [2]uint8{2, 2} // none yet
}

func (w *serial) add(c0, c1 code) {
	x, y := w.side(c0), w.side(c1)
	if w.last[0] < 2 {
		w.counts[0][2*w.last[0]+x]++
		w.counts[1][2*w.last[1]+y]++
		w.counts[3][2*w.last[1]+x]++
	}
	w.counts[2][2*x+y]++
	w.last = [2]uint8{x, y}
}

// side is 1 for numbers from the threshold on, for every other text known when it was set, and for errors. Categories are
// numbered as they come: later texts would take turns, and look as if they depended on each other.
func (w *serial) side(c code) uint8 {
	if !isNumber(c) {
		switch id := categoryOf(c); {
		case id >= firstError:
			return 1
		case id >= w.known:
			return 0
		default:
			return uint8(id & 1)
		}
	}
	if c >= w.mid {
		return 1
	}
	return 0
}

// dependence is the likelihood-ratio statistic of a table against independence (chi-square of one degree of freedom; less
// where counts are few).
func dependence(k *[4]int32) float64 {
	n := float64(k[0]) + float64(k[1]) + float64(k[2]) + float64(k[3])
	g := 0.0
	for i, c := range k {
		if c > 0 {
			row := float64(k[i&2]) + float64(k[i|1])
			column := float64(k[i&1]) + float64(k[i|2])
			g += 2 * float64(c) * math.Log(float64(c)*n/(row*column))
		}
	}
	return g
}

// certainDependence is exceeded by chance, over all relations and slots, with a probability of about e^-15 a look.
const certainDependence = 30

// dependenceWarnings names the relations that are certain, with the slot that shows each most.
func (a *Audit) dependenceWarnings() (w []withheld.Text) {
	least := certainDependence + 2*math.Log(4*float64(max(1, len(a.slots))))
	for r, words := range relations {
		top, at, n := least, -1, 0
		for i, s := range a.slots {
			if s.shared && r >= 2 {
				continue // said already, and accounted for
			}
			if g := dependence(&s.serial.counts[r]); g > least {
				n++
				if g > top {
					top, at = g, i
				}
			}
		}
		if at >= 0 {
			w = append(w, withheld.Sprintf("%s depend on each other (most in %s; %d of %d columns or partitions): cached, reused or seeded noise; "+
				"verdict and bound assume fresh noise in every trial and do not hold without it", words, a.slotWords(at), n, len(a.slots)))
		}
	}
	return w
}
