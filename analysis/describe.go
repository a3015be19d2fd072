package analysis

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// found is the event that won most, and the likelihood ratio that trials after its choice showed.
type found struct {
	event *Event
	ratio float64
}

// loudest returns the event of the view that holds most of the wealth against the claim, NaN and nil before anything was
// learned.
func (a *Audit) loudest() found {
	now := a.lead.current(&a.book, a.epoch)
	top, at, n := math.Inf(-1), -1, 0
	var best entry
	for _, en := range a.epoch.entries {
		s := &a.book.stakes[en.score]
		for v := range s.views {
			places := now[s.at+v*len(s.mix) : s.at+(v+1)*len(s.mix)]
			if w := logSumExp(places); w > top && a.bets(n) {
				top, at, best = w, n, en
			}
			n++
		}
	}
	if at < 0 {
		return found{ratio: math.NaN()}
	}
	return a.describe(a.named(best.score), best.table, &a.lead.bets[at].events)
}

// bets reports whether anything is at stake.
func (a *Audit) bets(n int) bool {
	e := &a.lead.bets[n].events
	return e.toward[towardD0]|e.toward[towardD1] != 0
}

// named returns the series of a score that is in play.
func (a *Audit) named(id scoreID) *series {
	for _, list := range [2][]*series{a.specials, a.slots} {
		for _, s := range list {
			if s.staked && s.id == id {
				return s
			}
		}
	}
	return nil
}

// describe puts the louder of a view's two events in words.
func (a *Audit) describe(s *series, t *table, e *events) found {
	side, ratio, p, q := towardD0, 0.0, 0.0, 0.0
	for _, d := range [2]int{towardD0, towardD1} {
		if e.toward[d] == 0 {
			continue
		}
		x, y := t.frequency(e, d)
		if d == towardD1 {
			x, y = y, x
		}
		if r := x / y; r > ratio {
			side, ratio, p, q = d, r, x, y
		}
	}
	direction, other := "D0", "D1"
	if side == towardD1 {
		direction, other = "D1", "D0"
	}
	ev := &Event{Score: s.kind.String(), Direction: direction}
	what := a.outcomes(s, e.toward[side])
	if s.kind == slotScore {
		ev.Partition = a.reader.labels[s.slot/a.reader.cells()]
	}
	how := "more likely on " + direction
	if n := float64(t.pairs) + float64(sum(t.during[0])); q*(n+1) <= .5 && p*(n+1) > 1 && s.plain(e.toward[side]) {
		how = "only on " + direction + ", never on " + other
	}
	ev.Description = what + " " + how
	return found{ev, ratio}
}

// plain reports whether an event is one that is simply there or not, rather than a part of a range.
func (s *series) plain(set uint64) bool {
	numbers := uint64(1)<<s.binner.numeric() - 1
	return s.kind != slotScore && !s.kind.derived() ||
		set&numbers == 0 || set&numbers == numbers
}

// frequency returns the smoothed probabilities of an event in both worlds, from the block at hand and the past.
func (t *table) frequency(e *events, side int) (p, q float64) {
	var k [2]float64
	var n [2]float64
	for w := range k {
		for _, counts := range [2][]int32{t.before[w], t.during[w]} {
			c := e.classCounts(counts)
			k[w] += float64(c[side])
			n[w] += float64(c[0] + c[1] + c[2])
		}
	}
	return (k[0] + .5) / (n[0] + 1), (k[1] + .5) / (n[1] + 1)
}

func sum(counts []int32) (n int) {
	for _, c := range counts {
		n += int(c)
	}
	return n
}

// String returns the score's name in reports.
func (k kind) String() string {
	return [...]string{"value", "rows", "repeat", "low_bit", "joint_laplace", "joint_gauss", "certain", "fitted", "value", "difference", "joint_linear", "fraction", "joint_ratio", "fineness", "joint_ratio", "joint_laplace"}[k]
}

// outcomes puts a set of bins of a score in words.
func (a *Audit) outcomes(s *series, set uint64) string {
	switch s.kind {
	case rowsScore:
		return s.binner.words(set, "number of rows", a.categoryWord(s))
	case repeatScore:
		return "exact repeat of an earlier result"
	case certainScore:
		return "deterministic or cached noise: the same result every time,"
	case lowBitScore:
		return "lowest bits of the numbers: " + s.binner.words(set, "exponent", a.categoryWord(s))
	case fittedScore:
		noun := "column " + a.reader.columnName(0) + ": " + a.fitted.String()
		return s.binner.words(set, noun, a.categoryWord(s))
	case contrastScore:
		return "sum of " + a.combinationWords(&a.contrast) + ", each counted from its center: " + s.binner.words(set, "value", a.categoryWord(s))
	case discriminantScore:
		return "sum of " + a.combinationWords(&a.discriminant.direction) + ", each counted from its center: " +
			s.binner.words(set, "value", a.categoryWord(s))
	case finenessScore:
		return "lowest bits beside those of noise around the centres: " +
			s.binner.words(set, "binary places too fine for D1 (below 0: for D0)", a.categoryWord(s))
	case fractionScore:
		return a.slotWords(a.fraction.slot) + ": " + s.binner.words(set, a.fraction.String(), a.categoryWord(s))
	case laplaceScore, gaussScore, calibratedLaplaceScore:
		return fmt.Sprintf("all %d partitions and columns taken together: %s", len(a.slots),
			s.binner.words(set, "score", a.categoryWord(s)))
	case ratioScore, calibratedScore:
		return fmt.Sprintf("all %d partitions and columns taken together: %s", len(a.slots),
			s.binner.words(set, "estimated log-likelihood ratio", a.categoryWord(s)))
	}
	r := a.reader
	prefix := ""
	if r.keyed {
		prefix = "partition " + r.labels[s.slot/r.cells()] + ", "
	}
	if s.binner.isPresence(set) {
		return strings.TrimSuffix(prefix, ", ") + " present"
	}
	if len(r.measures) > 0 {
		prefix += "column " + r.columnName(r.measures[s.slot%r.cells()]) + ": "
	}
	return prefix + s.binner.words(set, "value", a.categoryWord(s))
}

// isPresence reports whether a set holds every outcome but absent.
func (b *binner) isPresence(set uint64) bool {
	for i, id := range b.categories {
		if id == absent {
			others := uint64(1)<<(b.bins()-1) - 1 // the bin of unseen categories does not matter
			return set&others == others&^(1<<(b.numeric()+i))
		}
	}
	return false
}

// categoryWord returns what names the categories of a series.
func (a *Audit) categoryWord(s *series) func(id uint16) string {
	return func(id uint16) string {
		switch int(id) {
		case absent:
			return "absent"
		case nullValue:
			return "NULL"
		case notANumber:
			return "NaN"
		case plusInfinity:
			return "Infinity"
		case minusInfinity:
			return "-Infinity"
		case otherShape:
			return "other columns"
		case otherError:
			return "another error"
		case otherText:
			return "another text"
		}
		if w, ok := a.errors.word(int(id)); ok {
			return "error " + w
		}
		if s.kind == slotScore || s.kind == fittedScore || s.kind == lawScore {
			if w, ok := a.reader.words[s.slot%a.reader.cells()].word(int(id)); ok {
				return strconv.Quote(w)
			}
		}
		return "another outcome"
	}
}

// words puts a set of bins in words: ranges of numbers and names of categories.
func (b *binner) words(set uint64, noun string, name func(uint16) string) string {
	var parts []string
	for i := 0; i < b.numeric(); {
		if set>>i&1 == 0 {
			i++
			continue
		}
		j := i
		for j+1 < b.numeric() && set>>(j+1)&1 == 1 {
			j++
		}
		parts = append(parts, b.interval(i, j, noun))
		i = j + 1
	}
	for i, id := range b.categories {
		if set>>(b.numeric()+i)&1 == 1 {
			parts = append(parts, name(id))
		}
	}
	const most = 6
	if len(parts) > most {
		parts = append(parts[:most], "…")
	}
	if len(parts) == 0 {
		return "an outcome not seen before"
	}
	return strings.Join(parts, " or ")
}

// interval puts the numeric bins i to j in words.
func (b *binner) interval(i, j int, noun string) string {
	number := func(x float64) string { return strconv.FormatFloat(x, 'g', 6, 64) }
	switch {
	case i == 0 && j == len(b.edges):
		return "any " + noun
	case i == 0:
		return noun + " < " + number(b.edges[j])
	case j == len(b.edges):
		return noun + " >= " + number(b.edges[i-1])
	case math.Nextafter(b.edges[i-1], math.Inf(1)) == b.edges[j]:
		return noun + " = " + number(b.edges[i-1])
	}
	return noun + " from " + number(b.edges[i-1]) + " to " + number(b.edges[j])
}
