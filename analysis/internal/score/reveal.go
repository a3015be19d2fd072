package score

import (
	"math"

	"github.com/dpwatch/dpwatch/analysis/internal/bins"
	"github.com/dpwatch/dpwatch/analysis/internal/code"
	"github.com/dpwatch/dpwatch/analysis/internal/event"
	"github.com/dpwatch/dpwatch/internal/withheld"
)

// This file holds the bet on engines that return a value without noise, or with noise cut off at a bound, in a few of
// the trials: on a number that came before in one world and never in the other, if exact repeats are rare. It also bets
// on single numbers beyond the range of the other world, if each world has many. If both laws have the same support, a
// world has k numbers or more beyond the least number of the other with probability at most (1+1/R)^-k under the claim.

// revealScore is a rare number that comes again and again in one world only, or lies beyond the range of the other.
var revealScore = &kind{
	name: "repeat", make: func(int) statistic { return reveal{} }, where: everyResult,
	single: .001, several: .001, lent: revealShare / (1 - revealShare), views: []event.View{event.Ascending}, prior: LawPrior, looksBack: true, eventOf: revealEvent,
	check: func(s *Series) bool { return s.Table.Bins() == s.Table.Numeric+2*rareKinds+1 },
}

type reveal struct{ memoryless }

func (reveal) score(r *Result) code.Code {
	if r.ranges == nil {
		return r.rare
	}
	return r.ranges.outside(r.Codes[0], r.rare)
}

func (reveal) words(_ *Input, s *Series, set uint64) withheld.Text {
	if revealEvent(s, set) == BeyondEvent {
		return withheld.Public("a number beyond the range of the other world")
	}
	return withheld.Public("a rare result that was seen before in that world alone, or a number beyond the range of the other world")
}

// revealEvent returns the kind of a set of bins.
func revealEvent(s *Series, set uint64) EventKind {
	if set&^(3<<(s.Binner.Numeric()+2*outside)) == 0 {
		return BeyondEvent
	}
	return RepeatEvent
}

// The categories of revealScore: a result that came once before, in one world alone, one that came more often, and a
// single number beyond the range of one world.
const (
	onceOnD0 = code.FirstText + iota
	onceOnD1
	oftenOnD0
	oftenOnD1
	outsideD1
	outsideD0
	notRare
)

// rareKinds are the pairs of categories (D0, D1): once, often, and beyond the other's range.
const (
	rareKinds = 3
	outside   = 2 // no repeat
)

// rareCode says in which world alone a result with a number came before, of how often it came in each.
func rareCode(n [2]int32) code.Code {
	switch n0, n1 := n[0], n[1]; {
	case n0 > 1 && n1 == 0:
		return code.Category(oftenOnD0)
	case n1 > 1 && n0 == 0:
		return code.Category(oftenOnD1)
	case n0 == 1 && n1 == 0:
		return code.Category(onceOnD0)
	case n1 == 1 && n0 == 0:
		return code.Category(onceOnD1)
	}
	return code.Category(notRare)
}

// What the bet requires and receives.
const (
	rareRepeats  = 10  // at most one in so many results of each world repeats an earlier one
	fewByChance  = .05 // results that are expected to come twice by chance, up to which a second occurrence is evidence
	fewTriples   = .25 // the same for three times
	revealShare  = .8  // of all wealth, lent once a rare result came again in its own world
	outsideShare = .5  // the same for numbers beyond the other's range
	oneSideShare = .3  // the same where those of one world alone are bet on
	leastOutside = 2.2 // nats that those of each world are worth at least where they are bet on
	leastOneSide = 4.4 // the same where those of one world alone are
	alikePrior   = 20  // results in their own world that the bet counts as seen before
	otherPrior   = .1  // and in the other
)

// learnLent starts the next table, and places the bet once a rare result has come again in its world and none in the
// other: for the third time, or, where the numbers have so many digits that none repeats by chance, for the second; or
// if there are many numbers beyond the other world's range, with stronger evidence than every other score. Before,
// nothing is bet.
func (reveal) learnLent(in *Input, s *Series) float64 {
	live, repeated := s.Table != nil && s.Table.Laws != nil, false // repeated: by repeats
	if s.Table != nil {
		if live {
			at := s.Table.Numeric + 2
			repeated = s.Table.Laws[0][at] != s.Table.Laws[1][at]
		}
		s.carry()
	} else {
		s.Binner = bins.Binner{Categories: []code.Label{onceOnD0, onceOnD1, oftenOnD0, oftenOnD1, outsideD1, outsideD0}}
		s.Table = event.NewTable(1, s.Binner.Bins())
	}
	s.learned = in.pairs
	t := s.Table
	in.countOutside(t)
	var own, other [rareKinds][2]float64
	some := 0.0
	for w := range 2 {
		for k := range rareKinds {
			at := t.Numeric + 2*k + w
			own[k][w], other[k][w] = float64(t.Before[w][at]), float64(t.Before[1-w][at])
			some += own[k][w]
		}
		if rareRepeats*in.Repeats.Echoes[w] > in.pairs {
			return 0
		}
	}
	if some == 0 {
		return 0
	}
	n, p := float64(in.pairs), max(in.coincidence(0), in.coincidence(1))
	least := outside // the first kind that does not come by chance
	switch {
	case n*n*p <= fewByChance:
		least = 0
	case n*n*n/3*p*p <= fewTriples || repeated:
		least = 1
	}
	again := false
	for k := least; k < outside; k++ {
		again = again || own[k][0]+own[k][1] > 0 && other[k][0]+other[k][1] == 0
	}
	if !again && !repeated {
		least = outside
	}
	many := in.manyOutside(own[outside])
	l := revealLaws(own, other, least, many, t)
	t.Laws = &l
	switch {
	case live:
	case again:
		return revealShare
	case many != [2]bool{} && in.strongestOf(t):
		if many[0] && many[1] {
			return outsideShare
		}
		return oneSideShare
	default:
		t.Laws = nil
	}
	return 0
}

// manyOutside says for which worlds numbers beyond the other's range are bet on: both if both have some, as noise that
// is cut off at both ends gives them, or one that has many, as noise with one end does.
func (in *Input) manyOutside(own [2]float64) (many [2]bool) {
	each := math.Log1p(1 / in.null.Ratio)
	if min(own[0], own[1])*each >= leastOutside {
		return [2]bool{true, true}
	}
	for w := range many {
		many[w] = own[w]*each >= leastOneSide
	}
	return many
}

// strongestOf reports whether a table has stronger evidence than those of all other scores.
func (in *Input) strongestOf(t *event.Table) bool {
	h := in.null
	mine := event.Strength(h, t, &in.order)
	for _, s := range in.All() {
		if s.staked && s.Table != nil && s.Table != t && s.Table.Paired == nil && event.Strength(h, s.Table, &in.order) >= mine {
			return false
		}
	}
	return true
}

// countOutside sets the counts of numbers beyond the other world's range to those that the ranges of now give. Those of
// the past were narrower.
func (in *Input) countOutside(t *event.Table) {
	if len(in.Slots) != 1 {
		return
	}
	for w, codes := range in.Slots[0].Past {
		for k := range 2 {
			t.Before[w][t.Numeric+2*outside+k] = 0
		}
		for _, c := range codes {
			if id := code.CategoryOf(in.ranges.outside(c, code.Category(notRare))); id != notRare {
				t.Before[w][t.Numeric+int(id)-onceOnD0]++
			}
		}
	}
}

// revealLaws are a working alternative in which a rare result hardly ever comes in the other world. Kinds below least
// are as likely in both, and so are a world's numbers beyond the other's range unless they are many.
func revealLaws(own, other [rareKinds][2]float64, least int, many [2]bool, t *event.Table) event.Laws {
	bins, n := t.Bins(), float64(t.Pairs)
	l := event.Laws{make([]float64, bins), make([]float64, bins)}
	for k := range rareKinds {
		for w := range 2 {
			at := t.Numeric + 2*k + w
			mass := (own[k][w] + other[k][w] + .5) / (2*n + 4)
			p := .5
			switch {
			case k == outside && !many[w]:
			case k == outside:
				p = (own[k][w] + .5) / (own[k][w] + 1)
			case k >= least:
				p = (own[k][w] + alikePrior) / (own[k][w] + other[k][w] + alikePrior + otherPrior)
			}
			l[w][at], l[1-w][at] = 2*mass*p, 2*mass*(1-p)
		}
	}
	for w := range l {
		some := event.SumOf(l[w])
		if most := 1 - 1/(2*n+4); some > most { // nearly all results repeat or lie outside, some do both
			for i := range l[w] {
				l[w][i] *= most / some
			}
			some = most
		}
		l[w][bins-1] = 1 - some
	}
	return l
}
