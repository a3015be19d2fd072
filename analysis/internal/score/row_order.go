package score

import (
	"math"
	"slices"

	"github.com/dpwatch/dpwatch/analysis/internal/code"
	"github.com/dpwatch/dpwatch/analysis/internal/dependence"
	"github.com/dpwatch/dpwatch/analysis/internal/event"
	"github.com/dpwatch/dpwatch/analysis/internal/fit"
	"github.com/dpwatch/dpwatch/analysis/internal/state"
	"github.com/dpwatch/dpwatch/internal/withheld"
)

// orderScore is the order of the rows of a result.
var orderScore = &kind{
	name: "order", make: func(int) statistic { return new(rowOrder) }, where: orderedGroups, several: .005,
	views: []event.View{event.Ascending, event.Sorted}, lifetime: lifetime{learned: 64, growth: 1.5}, event: OrderEvent, whole: true,
	phrase: publicPhrase("an order of the rows"),
}

// rowOrder scores the order in which a result gives its groups: naive Bayes on which of two groups comes first, of all
// pairs of few groups, and of more, of those that are neighbours in the average order, one of which every other order
// inverts.
//
// Rows sorted by a noisy value leak no more than that value. Rows that are not sorted have the order in which the
// engine processed the groups, which no noise hides.
type rowOrder struct {
	firsts []precedence // the pairs of groups that the score uses
	places []int32      // scratch: the row of a group, from 1; 0 for none
}

// orders are the orders in which results gave their groups.
type orders struct {
	first  []int32      // of the first result
	seen   int          // pairs
	varied bool         // an order other than the first has come; before, nothing is kept
	past   [2][][]int32 // kept pairs
	stride int          // of those that are kept
	bet    bool         // the orders were bet on, now or before: some of the wealth may rest on it
}

// precedence is what it adds to the score that group a comes before group b, or after it.
type precedence struct {
	a, b          int32
	before, after float64
}

// Limits on what is kept and used.
const (
	maxOrderPairs = 2048
	maxOrderCells = 1 << 18 // of the kept orders of one world
	allPrecedence = 16      // groups up to which all pairs of them are used
	leastOrder    = 16      // squared standard errors: chance makes 12 over 500 pairs of groups
)

// add takes the orders of a pair, and counts them in the search for dependence of the orders on each other.
func (o *orders) add(now [2][]int32, d *dependence.Independence) {
	if o.seen == 0 {
		o.first, o.stride = slices.Clone(now[0]), 1
	}
	o.seen++
	if !o.varied {
		if slices.Equal(now[0], o.first) && slices.Equal(now[1], o.first) {
			return
		}
		o.varied = true
		for range min(o.seen-1, maxOrderPairs/2) {
			o.keep([2][]int32{o.first, o.first})
		}
	}
	if o.seen%o.stride == 0 {
		o.keep(now)
	}
	d.Add(orderCode(now[0]), orderCode(now[1]))
}

// keep appends a pair to the past; orders that are equal to those before share their memory.
func (o *orders) keep(rows [2][]int32) {
	for w, p := range o.past {
		if n := len(p); n > 0 && slices.Equal(p[n-1], rows[w]) {
			o.past[w] = append(p, p[n-1])
		} else {
			o.past[w] = append(p, slices.Clone(rows[w]))
		}
	}
	if n := len(o.past[0]); n >= maxOrderPairs || n > 256 && n*max(len(rows[0]), len(rows[1])) > maxOrderCells {
		o.stride *= 2
		for w, p := range o.past {
			for i := range n / 2 {
				p[i] = p[2*i+1]
			}
			clear(p[n/2:])
			o.past[w] = p[:n/2]
		}
	}
}

// each calls f for every precedence of a result of which it holds both groups.
func (o *rowOrder) each(rows []int32, f func(i int, before bool)) {
	for i, k := range rows {
		for int(k) >= len(o.places) {
			o.places = append(o.places, make([]int32, int(k)+1-len(o.places))...)
		}
		o.places[k] = int32(i) + 1
	}
	for i := range o.firsts {
		p := &o.firsts[i]
		if int(max(p.a, p.b)) >= len(o.places) {
			continue
		}
		if a, b := o.places[p.a], o.places[p.b]; a > 0 && b > 0 {
			f(i, a < b)
		}
	}
	for _, k := range rows {
		o.places[k] = 0
	}
}

func (o *rowOrder) score(r *Result) code.Code { return o.of(r.order) }

// of returns the score of an order.
func (o *rowOrder) of(rows []int32) code.Code {
	sum := 0.0
	o.each(rows, func(i int, before bool) {
		if before {
			sum += o.firsts[i].before
		} else {
			sum += o.firsts[i].after
		}
	})
	return code.Number(fit.Grain(sum))
}

// choose sets the pairs of groups that are used.
func (o *rowOrder) choose(past [2][][]int32) {
	var sum, n []float64
	for _, past := range past {
		for _, rows := range past {
			for i, k := range rows {
				for int(k) >= len(n) {
					sum, n = append(sum, 0), append(n, 0)
				}
				sum[k] += (float64(i) + .5) / float64(len(rows))
				n[k]++
			}
		}
	}
	var groups []int32
	for k := range n {
		if n[k] > 0 {
			groups = append(groups, int32(k))
		}
	}
	slices.SortStableFunc(groups, func(a, b int32) int {
		switch d := sum[a]/n[a] - sum[b]/n[b]; {
		case d < 0:
			return -1
		case d > 0:
			return 1
		}
		return 0
	})
	o.firsts = o.firsts[:0]
	for i, a := range groups {
		rest := groups[i+1:]
		if len(groups) > allPrecedence {
			rest = rest[:min(1, len(rest))]
		}
		for _, b := range rest {
			o.firsts = append(o.firsts, precedence{a: a, b: b})
		}
	}
}

func (o *rowOrder) fit(in *Input, s *Series) (scores [2][]code.Code, differ bool) {
	scores, differ = o.weigh(in.orders.past)
	in.orders.bet = in.orders.bet || differ
	s.Independence.Renew(in.orders.codes(), &in.scratch)
	return scores, differ
}

// weigh fits the score to the past and returns the scores of the past, by weights from the other part of it. It reports
// whether the worlds' orders differ more than chance would have it.
func (o *rowOrder) weigh(all [2][][]int32) (scores [2][]code.Code, differ bool) {
	if len(all[0]) < leastJoint {
		return scores, false
	}
	o.choose(all)
	k := len(o.firsts)
	counts := make([][folds][2][2]float64, k) // per fold and world: before, after
	for w, past := range all {
		for n, rows := range past {
			o.each(rows, func(i int, before bool) { counts[i][n%folds][w][code.Bit(!before)]++ })
		}
	}
	for i := range counts {
		var c [2][2]float64
		for f := range folds {
			for w := range c {
				c[w][0], c[w][1] = c[w][0]+counts[i][f][w][0], c[w][1]+counts[i][f][w][1]
			}
		}
		n0, n1 := c[0][0]+c[0][1], c[1][0]+c[1][1]
		p := (c[0][0] + c[1][0]) / (n0 + n1)
		gap := c[0][0]/n0 - c[1][0]/n1
		differ = differ || gap*gap > leastOrder*p*(1-p)*(1/n0+1/n1) // false where a world has none
	}
	if !differ {
		o.firsts = nil
		return scores, false
	}
	weigh := func(taken func(fold int) bool) {
		for i := range o.firsts {
			var c [2][2]float64
			for f := range folds {
				for w := range c {
					if taken(f) {
						c[w][0], c[w][1] = c[w][0]+counts[i][f][w][0], c[w][1]+counts[i][f][w][1]
					}
				}
			}
			n0, n1 := c[0][0]+c[0][1], c[1][0]+c[1][1]
			o.firsts[i].before, o.firsts[i].after = fit.ShrunkLogRatio(c[0][0], c[1][0], n0, n1), fit.ShrunkLogRatio(c[0][1], c[1][1], n0, n1)
		}
	}
	for w, past := range all {
		scores[w] = make([]code.Code, len(past))
	}
	for f := range folds {
		weigh(func(fold int) bool { return fold != f })
		for w, past := range all {
			for n := f; n < len(past); n += folds {
				scores[w][n] = o.of(past[n])
			}
		}
	}
	weigh(func(int) bool { return true })
	o.firsts = slices.DeleteFunc(o.firsts, func(p precedence) bool { return p.before == 0 && p.after == 0 })
	return scores, true
}

// orderCode returns a number that identifies an order.
func orderCode(rows []int32) code.Code {
	h := uint64(len(rows))
	for _, k := range rows {
		h = (h ^ uint64(k)) * code.HashMultiplier
		h ^= h >> 29
	}
	return float64(h >> 32)
}

// codes are the past orders as numbers.
func (o *orders) codes() (past [2][]code.Code) {
	for w, orders := range o.past {
		for _, rows := range orders[max(0, len(orders)-dependence.MarkValues):] {
			past[w] = append(past[w], orderCode(rows))
		}
	}
	return past
}

// words names the two groups whose order says most.
func (o *rowOrder) words(in *Input, s *Series, set uint64) withheld.Text {
	words := in.binWords(s, set, nounOf("score", "scores"))
	var top *precedence
	for i := range o.firsts {
		if p := &o.firsts[i]; top == nil || math.Abs(p.before-p.after) > math.Abs(top.before-top.after) {
			top = p
		}
	}
	if top == nil {
		return withheld.Sprintf("order of the rows: %s", words)
	}
	return withheld.Sprintf("order of the rows, mostly of %s and %s: %s", in.Reader.GroupWords(int(top.a)), in.Reader.GroupWords(int(top.b)), words)
}

func (o *rowOrder) state(c *state.Codec) {
	state.List(c, &o.firsts, func(p *precedence) {
		c.All(&p.a, &p.b, &p.before, &p.after)
		c.Check(min(p.a, p.b) >= 0 && int(max(p.a, p.b)) < c.Groups)
	})
}

// state describes the orders of rows that are kept.
func (o *orders) state(c *state.Codec) {
	rows := func(all *[]int32) {
		state.List(c, all, func(k *int32) {
			state.Num(c, k)
			c.Check(*k >= 0 && int(*k) < c.Groups)
		})
	}
	rows(&o.first)
	c.All(&o.seen, &o.stride, &o.varied, &o.bet)
	for w := range o.past {
		state.List(c, &o.past[w], rows)
	}
	c.Check(o.seen >= 0 && (o.seen == 0 || o.stride >= 1) && len(o.past[0]) == len(o.past[1]) && len(o.past[0]) <= maxOrderPairs)
}
