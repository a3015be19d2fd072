package score

import (
	"math"
	"strconv"

	"github.com/dpwatch/dpwatch/analysis/internal/bins"
	"github.com/dpwatch/dpwatch/analysis/internal/code"
	"github.com/dpwatch/dpwatch/internal/withheld"
)

// Words describes a set of bins of a score.
func (in *Input) Words(s *Series, set uint64) withheld.Text { return s.statistic.words(in, s, set) }

// noun names what the bins of a score count.
type noun struct{ one, many withheld.Text }

func nounOf(one, many string) noun { return noun{withheld.Public(one), withheld.Public(many)} }

// binWords describes a set of bins of a score.
func (y *Layout) binWords(s *Series, set uint64, n noun) withheld.Text {
	return binsInWords(&s.Binner, set, n, y.CategoryWord(s))
}

// CategoryWord returns what names the categories of a series. Texts are withheld; error classes, NULL and the like are
// not.
func (y *Layout) CategoryWord(s *Series) func(l code.Label) withheld.Text {
	return func(l code.Label) withheld.Text {
		switch l {
		case code.Absent:
			return withheld.Public("absent")
		case code.NullValue:
			return withheld.Public("NULL")
		case code.NotANumber:
			return withheld.Public("NaN")
		case code.PlusInfinity:
			return withheld.Public("Infinity")
		case code.MinusInfinity:
			return withheld.Public("-Infinity")
		case code.OtherShape:
			return withheld.Public("other columns")
		case code.OtherError:
			return withheld.Public("another error")
		case code.OtherText:
			return withheld.Public("another text")
		}
		if w, ok := y.Errors.Word(l); ok {
			return errorWords(w)
		}
		if s.kind.event == NumberEvent {
			if w, ok := y.Reader.Words[s.Slot%y.Reader.Cells()].Word(l); ok {
				return withheld.New(strconv.Quote(w), "a text "+withheld.Mark)
			}
		}
		if l.Category() == code.OtherText {
			return withheld.Public("another text")
		}
		return withheld.Public("another outcome")
	}
}

// errorWords names an error class: a SQLSTATE, or a word of package replay's. What else recorded results hold is
// withheld.
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

// binsInWords describes a set of bins: ranges of numbers and names of categories.
func binsInWords(b *bins.Binner, set uint64, n noun, name func(code.Label) withheld.Text) withheld.Text {
	var parts []withheld.Text
	for i := 0; i < b.Numeric(); {
		if set>>i&1 == 0 {
			i++
			continue
		}
		j := i
		for j+1 < b.Numeric() && set>>(j+1)&1 == 1 {
			j++
		}
		parts = append(parts, interval(b.Edges, i, j, n))
		i = j + 1
	}
	for i, id := range b.Categories {
		if set>>(b.Numeric()+i)&1 == 1 {
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

// interval describes the numeric bins i to j. The edges are withheld, because they depend on values of rows.
func interval(edges []float64, i, j int, n noun) withheld.Text {
	say := func(value, public string) withheld.Text {
		return withheld.New(n.one.Reveal()+" "+value, public+" "+n.many.String())
	}
	switch {
	case i == 0 && j == len(edges):
		return withheld.Sprintf("any %s", n.one)
	case i == 0:
		below, value := edgeOf(edges[j])
		return say(map[bool]string{true: "<= ", false: "< "}[below]+value, "small")
	case j == len(edges):
		above, value := edgeOf(edges[i-1])
		return say(map[bool]string{true: "> ", false: ">= "}[above]+value, "large")
	case math.Nextafter(edges[i-1], math.Inf(1)) == edges[j]:
		return say("= "+number(edges[i-1]), "one of the")
	}
	above, low := edgeOf(edges[i-1])
	below, top := edgeOf(edges[j])
	return say(map[bool]string{true: "above ", false: "from "}[above]+low+map[bool]string{true: " to ", false: " to below "}[below]+top, "a range of")
}

// edgeOf returns the value at which an edge cuts, and whether the edge is the number after it: the value is then below the
// edge, with those that are smaller. Such an edge is beside a value that fills a bin alone.
func edgeOf(edge float64) (after bool, value string) {
	before := math.Nextafter(edge, math.Inf(-1))
	shortest := func(x float64) int { return len(strconv.FormatFloat(x, 'g', -1, 64)) }
	if before == 0 || shortest(before)+4 <= shortest(edge) {
		return true, number(before)
	}
	return false, number(edge)
}

// number writes a number: exactly if that is short, as it is for answers that are multiples of a step.
func number(x float64) string {
	const digits = 6
	if exact := strconv.FormatFloat(x, 'g', -1, 64); len(exact) <= 2*digits {
		return exact
	}
	return strconv.FormatFloat(x, 'g', digits, 64)
}

// ColumnOf returns the name of the column that a score is about, "" for none and for several.
func (y *Layout) ColumnOf(s *Series) string {
	if r := y.Reader; s.kind.column && len(r.Measures) > 0 {
		return r.ColumnName(r.Measures[s.Slot%r.Cells()])
	}
	return ""
}

// SlotWords names a slot.
func (y *Layout) SlotWords(slot int) withheld.Text {
	r := y.Reader
	var parts []withheld.Text
	if r.Keyed {
		parts = append(parts, r.GroupWords(slot/r.Cells()))
	}
	if len(r.Measures) > 0 {
		parts = append(parts, withheld.Public("column "+r.MeasureName(slot%r.Cells())))
	}
	return withheld.Join(parts, ", ")
}

// SlotLabel names a slot below a figure.
func (y *Layout) SlotLabel(slot int) withheld.Text {
	r := y.Reader
	if len(r.Measures) == 0 {
		return r.GroupName(slot / r.Cells())
	}
	column := withheld.Public("column " + r.MeasureName(slot%r.Cells()))
	if !r.Keyed {
		return column
	}
	return withheld.Sprintf("%s, %s", r.GroupName(slot/r.Cells()), column)
}
