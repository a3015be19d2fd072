package analysis

// This file bets on engines that give a value without noise, or with noise cut off at a bound, in few of the trials: a number
// that came before in one world and never in the other, where exact repeats are the exception.

// The categories of revealScore: a result that came once before, in one world alone, and one that came more often.
const (
	onceOnD0 = firstText + iota
	onceOnD1
	oftenOnD0
	oftenOnD1
	notRare
)

// rareKinds are the pairs of categories (D0, D1): once, often.
const rareKinds = 2

// rareCode says in which world alone a result with a number came before, of how often it came in each.
func rareCode(n [2]int32) code {
	switch n0, n1 := n[0], n[1]; {
	case n0 > 1 && n1 == 0:
		return category(oftenOnD0)
	case n1 > 1 && n0 == 0:
		return category(oftenOnD1)
	case n0 == 1 && n1 == 0:
		return category(onceOnD0)
	case n1 == 1 && n0 == 0:
		return category(onceOnD1)
	}
	return category(notRare)
}

// What the bet takes, and gets.
const (
	rareRepeats = 10  // at most one in so many results of each world repeats an earlier one
	fewByChance = .05 // results that are expected to come twice by chance, up to which a second coming says something
	fewTriples  = .25 // and to come three times
	revealShare = .8  // of all wealth, lent once a rare result came again in its own world
	alikePrior  = 20  // results in their own world that the bet counts as seen before
	otherPrior  = .1  // and in the other
)

// turnReveal starts the next table, and places the bet once a rare result has come again in its world and none in the
// other: for the third time, or, where the numbers have so many digits that none repeats by chance, for the second.
// Before, nothing is bet.
func (a *Audit) turnReveal(s *series, e *epoch) {
	live := s.table != nil && s.table.laws != nil
	if s.table != nil {
		s.carry()
	} else {
		s.binner = binner{categories: []label{onceOnD0, onceOnD1, oftenOnD0, oftenOnD1}}
		s.table = newTable(1, s.binner.bins())
	}
	s.learned = a.pairs
	t := s.table
	var own, other [rareKinds][2]float64
	some := 0.0
	for w := range 2 {
		for k := range rareKinds {
			at := t.numeric + 2*k + w
			own[k][w], other[k][w] = float64(t.before[w][at]), float64(t.before[1-w][at])
			some += own[k][w]
		}
		if rareRepeats*a.repeats.echoes[w] > a.pairs {
			return
		}
	}
	if some == 0 {
		return
	}
	n, p := float64(a.pairs), max(a.coincidence(0), a.coincidence(1))
	least := rareKinds // the first kind that does not come by chance
	switch {
	case n*n*p <= fewByChance:
		least = 0
	case n*n*n/3*p*p <= fewTriples || live:
		least = 1
	}
	again := false
	for k := least; k < rareKinds; k++ {
		again = again || own[k][0]+own[k][1] > 0 && other[k][0]+other[k][1] == 0
	}
	if !live && !again {
		return
	}
	l := revealLaws(own, other, least, t)
	t.laws = &l
	if !live {
		e.lend = append(e.lend, grant{s.id, revealShare})
	}
}

// revealLaws are a working alternative in which a rare result hardly ever comes in the other world. Kinds below least are as
// likely in both.
func revealLaws(own, other [rareKinds][2]float64, least int, t *table) laws {
	bins, n := t.bins(), float64(t.pairs)
	l := laws{make([]float64, bins), make([]float64, bins)}
	for k := range rareKinds {
		for w := range 2 {
			at := t.numeric + 2*k + w
			mass := (own[k][w] + other[k][w] + .5) / (2*n + 4)
			p := .5
			if k >= least {
				p = (own[k][w] + alikePrior) / (own[k][w] + other[k][w] + alikePrior + otherPrior)
			}
			l[w][at], l[1-w][at] = 2*mass*p, 2*mass*(1-p)
		}
	}
	for w := range l {
		rest := 1.0
		for _, x := range l[w] {
			rest -= x
		}
		l[w][bins-1] = rest
	}
	return l
}
