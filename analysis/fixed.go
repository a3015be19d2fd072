package analysis

import (
	"math"

	"github.com/dpwatch/dpwatch/analysis/internal/eprocess"
	"github.com/dpwatch/dpwatch/analysis/internal/event"
	"github.com/dpwatch/dpwatch/analysis/internal/score"
)

// ClopperPearsonBound is the figure of a fixed budget: an event chosen on the first half of the trials, certified on
// the others.
type ClopperPearsonBound struct {
	// Epsilon is ln((p-delta)/q), with p the lower end of the event's probability in the world where it is likelier and
	// q the upper end in the other, each passed with probability at most alpha/2; 0 where that is negative or
	// undefined. Above the true epsilon with probability at most 1-Confidence, if the number of trials was fixed
	// beforehand.
	Epsilon Float  `json:"epsilon"`
	Event   *Event `json:"event"`
	Trials  int    `json:"trials"` // trials of each world that certify
	Hits    Trials `json:"hits"`   // of them, those with the event
}

// certificate counts a fixed event.
type certificate struct {
	score *score.Frozen // scores keep learning, the event must not change
	set   uint64
	heavy int // the world where the event is likelier
	event *Event
	pairs int
	hits  [2]int
}

// newCertificate chooses the event when half of the budget is used, so that the choice does not depend on what
// certifies it. rest is the number of pairs that are left. It returns nil if there is no event. The bins are a copy.
// Scores that depend on other results (repeats) are not events of one result and are left out.
func newCertificate(o *observations, scratch *[]uint8, rest int, delta float64) *certificate {
	c := &certificate{}
	top := math.Inf(-1)
	var best *score.Series
	for _, s := range o.scores.All() {
		if s.Table == nil || s.Table.Pairs == 0 || !s.OfOneResult() {
			continue
		}
		for _, v := range [...]event.View{event.Ascending, event.Folded, event.Sorted} {
			*scratch = event.OrderOf(s.Table, v, *scratch)
			for heavy := range 2 {
				if set, e := mostCertified(s.Table, *scratch, heavy, rest, delta); e > top {
					top, best, c.set, c.heavy = e, s, set, heavy
				}
			}
		}
	}
	if best == nil {
		return nil
	}
	c.score = best.Freeze()
	e := event.Events{}
	side := [2]int{eprocess.TowardD0, eprocess.TowardD1}[c.heavy]
	e.Toward[side] = c.set
	c.event = o.describe(best, best.Table, &e).event
	return c
}

// mostCertified returns the cut of an order (from either end) whose past counts promise the greatest bound from n
// trials, by the normal approximation of both ends.
func mostCertified(t *event.Table, order []uint8, heavy, n int, delta float64) (set uint64, bound float64) {
	bound = math.Inf(-1)
	p, q := t.Before[heavy], t.Before[1-heavy]
	m := float64(t.Pairs) + 1
	for _, fromEnd := range [...]bool{false, true} {
		var s uint64
		var kp, kq int32
		for i := range len(order) - 1 {
			b := order[i]
			if fromEnd {
				b = order[len(order)-1-i]
			}
			s, kp, kq = s|1<<b, kp+p[b], kq+q[b]
			x, y := (float64(kp)+.5)/m, (float64(kq)+.5)/m
			lo := x - 2*math.Sqrt(x*(1-x)/float64(n+1)) - delta
			hi := y + 2*math.Sqrt(y*(1-y)/float64(n+1)) + 4/float64(n+1)
			if e := math.Log(lo / hi); lo > 0 && e > bound {
				set, bound = s, e
			}
		}
	}
	return set, bound
}

// count adds one pair.
func (c *certificate) count(pair *[2]score.Result) {
	c.pairs++
	for w := range pair {
		if c.set>>c.score.Bin(&pair[w])&1 == 1 {
			c.hits[w]++
		}
	}
}

// bound returns the figure once the budget is used; nil where no event could be followed to the end.
func (c *certificate) bound(alpha, delta float64) *ClopperPearsonBound {
	if c.pairs == 0 {
		return nil
	}
	p, _ := ClopperPearson(c.hits[c.heavy], c.pairs, alpha)
	_, q := ClopperPearson(c.hits[1-c.heavy], c.pairs, alpha)
	e := math.Log((p - delta) / q)
	if !(e > 0) {
		e = 0
	}
	return &ClopperPearsonBound{Epsilon: Float(e), Event: c.event, Trials: c.pairs, Hits: Trials{c.hits[0], c.hits[1]}}
}
