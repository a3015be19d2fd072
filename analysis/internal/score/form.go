package score

import (
	"slices"

	"github.com/dpwatch/dpwatch/analysis/internal/code"
	"github.com/dpwatch/dpwatch/analysis/internal/event"
	"github.com/dpwatch/dpwatch/analysis/internal/state"
	"github.com/dpwatch/dpwatch/internal/withheld"
)

// formScore is the form of a result: see results.Reader.FormCode. It is bet on once results have several forms, in one
// world or in both together.
var formScore = &kind{
	name: "form", make: func(int) statistic { return new(resultForm) }, where: everyResult,
	single: .001, several: .001, lent: formShare / (1 - formShare), views: []event.View{event.Sorted}, keeps: true, lopsided: true, event: FormEvent, whole: true,
	phrase: publicPhrase("the form of the answer (digits after the point, parts of a document, words around numbers, names and types of columns, or what the server says beside it)"),
}

// formShare is the part of all wealth that is lent to the score.
const formShare = .03

type resultForm struct{ varied bool } // whether results had several forms

func (*resultForm) score(r *Result) code.Code { return r.form }

func (m *resultForm) state(c *state.Codec) { c.Bool(&m.varied) }

// learnLent starts the next table.
func (m *resultForm) learnLent(in *Input, s *Series) float64 {
	other := func(c code.Code) bool { return code.LabelOf(c) != code.LabelOf(s.Past[0][0]) }
	first := !m.varied && (slices.ContainsFunc(s.Past[0], other) || slices.ContainsFunc(s.Past[1], other))
	if m.varied = m.varied || first; !m.varied {
		s.Table = nil
		return 0
	}
	if s.turn(in.pairs, maxSpecialBins, &in.scratch); first {
		return formShare
	}
	return 0
}

// words name no form: it may hold words of the data.
func (*resultForm) words(*Input, *Series, uint64) withheld.Text {
	return withheld.Public("an answer of a form that the other dataset has less often (digits after the point, parts of a document, words around numbers, names and types of columns, or what the server says beside it)")
}

// MixingPast returns the past outcomes of a slot by which trials show that they do not depend on each other: those of the
// form where the texts of the slot hardly ever repeat, so that each differs from every other whatever the engine does.
func (set *Set) MixingPast(s *Series) [2][]code.Code {
	f := set.specials.ofKind(formScore)
	if f == nil || len(f.Past[0]) != len(s.Past[0]) || !freshTexts(s.Past[0]) || !freshTexts(s.Past[1]) {
		return s.Past
	}
	return f.Past
}

// freshTexts reports whether nearly all of the latest outcomes are texts that came once.
func freshTexts(past []code.Code) bool {
	const window, most = 512, .05
	past = past[max(0, len(past)-window):]
	seen := make(map[code.Label]bool, len(past))
	other := 0
	for _, c := range past {
		l := code.LabelOf(c)
		if code.IsNumber(c) || l.Category() < code.OtherText || seen[l] {
			other++
		}
		seen[l] = true
	}
	return float64(other) <= most*float64(len(past))
}
