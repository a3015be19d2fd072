package score

import "github.com/dpwatch/dpwatch/analysis/internal/code"

// formScore is the form of the texts of a result: see results.Reader.FormCode. Nothing is bet on it; see MixingPast.
var formScore = &kind{name: "form", make: func(int) statistic { return textForm{} }, where: everyResult, keeps: true}

type textForm struct{ silent }

func (textForm) score(r *Result) code.Code { return r.form }

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
