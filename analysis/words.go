package analysis

import (
	"math"
	"strconv"

	"github.com/dpwatch/dpwatch/internal/withheld"
)

// noun names what the bins of a score count.
type noun struct{ one, many withheld.Text }

func nounOf(one, many string) noun { return noun{withheld.Public(one), withheld.Public(many)} }

// outcomes puts a set of bins of a score in words.
func (a *Audit) outcomes(s *series, set uint64) withheld.Text {
	values := nounOf("value", "values")
	words := func(n noun) withheld.Text { return s.binner.words(set, n, a.categoryWord(s)) }
	switch s.kind {
	case rowsScore, seldomScore:
		return words(nounOf("number of rows", "numbers of rows"))
	case repeatScore:
		return withheld.Public("a result seen before in that world alone")
	case revealScore:
		if s.eventKind(set) == BeyondEvent {
			return withheld.Public("a number beyond the range of the other world")
		}
		return withheld.Public("a rare result that was seen before in that world alone, or a number beyond the range of the other world")
	case beyondScore:
		return withheld.Public("a number beyond the range of the other world, or a result seen before in one world alone")
	case lowBitScore:
		return withheld.Sprintf("lowest bits of the numbers: %s", words(nounOf("exponent", "exponents")))
	case fittedScore:
		return words(noun{
			withheld.Sprintf("column %s: %s", a.columnOf(s), a.fitted.words()),
			withheld.Sprintf("log-likelihood ratios of column %s, of noise fitted to D0 and to D1", a.columnOf(s)),
		})
	case contrastScore:
		return withheld.Sprintf("sum of %s, each counted from its center: %s", a.combinationWords(&a.contrast), words(values))
	case discriminantScore:
		return withheld.Sprintf("sum of %s, each counted from its center: %s", a.combinationWords(&a.discriminant.direction), words(values))
	case productsScore:
		return withheld.Sprintf("how %d partitions and columns vary together: %s", len(a.products.slots), words(nounOf("score", "scores")))
	case extremeScore:
		return withheld.Sprintf("%s of %d partitions and columns, each in units of its spread: %s", a.extreme.words(), len(a.extreme.centers), words(values))
	case finenessScore:
		places := "binary places too fine for D1 (below 0: for D0)"
		return withheld.Sprintf("lowest bits beside those of noise around the centres: %s", words(nounOf(places, "numbers of "+places)))
	case orderScore:
		return withheld.Sprintf("%s: %s", a.orderWords(), words(nounOf("score", "scores")))
	case fractionScore:
		return withheld.Sprintf("%s: %s", a.slotWords(a.fraction.slot), words(a.fraction.noun()))
	case laplaceScore, gaussScore, calibratedLaplaceScore:
		return withheld.Sprintf("all %d partitions and columns taken together: %s", len(a.slots), words(nounOf("score", "scores")))
	case ratioScore, calibratedScore:
		return withheld.Sprintf("all %d partitions and columns taken together: %s", len(a.slots),
			words(nounOf("estimated log-likelihood ratio", "estimated log-likelihood ratios")))
	}
	var where []withheld.Text
	r := a.reader
	values = r.valueNoun(s.slot % r.cells())
	if r.keyed {
		where = append(where, r.groupWords(s.slot/r.cells()))
	}
	if s.binner.isPresence(set) {
		if len(where) == 0 {
			return withheld.Public("a row present")
		}
		return withheld.Sprintf("%s present", withheld.Join(where, ", "))
	}
	if len(r.measures) > 0 {
		where = append(where, withheld.Public("column "+r.measureName(s.slot%r.cells())+":"))
	} else if r.keyed {
		return withheld.Sprintf("%s, %s", where[0], words(values))
	}
	if len(where) == 0 {
		return words(values)
	}
	return withheld.Sprintf("%s %s", withheld.Join(where, ", "), words(values))
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

// categoryWord returns what names the categories of a series. Texts are withheld; error classes, NULL and the like are not.
func (a *Audit) categoryWord(s *series) func(l label) withheld.Text {
	return func(l label) withheld.Text {
		switch l {
		case absent:
			return withheld.Public("absent")
		case nullValue:
			return withheld.Public("NULL")
		case notANumber:
			return withheld.Public("NaN")
		case plusInfinity:
			return withheld.Public("Infinity")
		case minusInfinity:
			return withheld.Public("-Infinity")
		case otherShape:
			return withheld.Public("other columns")
		case otherError:
			return withheld.Public("another error")
		case otherText:
			return withheld.Public("another text")
		}
		if w, ok := a.errors.word(l); ok {
			return errorWords(w)
		}
		if s.kind == slotScore || s.kind == fittedScore || s.kind == lawScore {
			if w, ok := a.reader.words[s.slot%a.reader.cells()].word(l); ok {
				return withheld.New(strconv.Quote(w), "a text "+withheld.Mark)
			}
		}
		if l.category() == otherText {
			return withheld.Public("another text")
		}
		return withheld.Public("another outcome")
	}
}

// errorWords names an error class: a SQLSTATE, or a word of package replay's. What else recorded results hold is withheld.
func errorWords(state string) withheld.Text {
	public := state == "timeout" || state == "too_large" || len(state) == 5
	for i := 0; public && len(state) == 5 && i < len(state); i++ {
		c := state[i]
		public = '0' <= c && c <= '9' || 'A' <= c && c <= 'Z'
	}
	if public {
		return withheld.Public("error " + state)
	}
	return withheld.New("error "+state, "an error "+withheld.Mark)
}

// words puts a set of bins in words: ranges of numbers and names of categories.
func (b *binner) words(set uint64, n noun, name func(label) withheld.Text) withheld.Text {
	var parts []withheld.Text
	for i := 0; i < b.numeric(); {
		if set>>i&1 == 0 {
			i++
			continue
		}
		j := i
		for j+1 < b.numeric() && set>>(j+1)&1 == 1 {
			j++
		}
		parts = append(parts, b.interval(i, j, n))
		i = j + 1
	}
	for i, id := range b.categories {
		if set>>(b.numeric()+i)&1 == 1 {
			parts = append(parts, name(id))
		}
	}
	const most = 6
	if len(parts) > most {
		parts = append(parts[:most], withheld.Public("…"))
	}
	if len(parts) == 0 {
		return withheld.Public("an outcome not seen before")
	}
	return withheld.Join(parts, " or ")
}

// interval puts the numeric bins i to j in words. The edges are withheld: they lie where the values do.
func (b *binner) interval(i, j int, n noun) withheld.Text {
	number := func(x float64) string { return strconv.FormatFloat(x, 'g', 6, 64) }
	say := func(value, public string) withheld.Text {
		return withheld.New(n.one.Reveal()+" "+value, public+" "+n.many.String())
	}
	switch {
	case i == 0 && j == len(b.edges):
		return withheld.Sprintf("any %s", n.one)
	case i == 0:
		return say("< "+number(b.edges[j]), "small")
	case j == len(b.edges):
		return say(">= "+number(b.edges[i-1]), "large")
	case math.Nextafter(b.edges[i-1], math.Inf(1)) == b.edges[j]:
		return say("= "+number(b.edges[i-1]), "one of the")
	}
	return say("from "+number(b.edges[i-1])+" to "+number(b.edges[j]), "a range of")
}
