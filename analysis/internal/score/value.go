package score

import (
	"math"

	"github.com/dpwatch/dpwatch/analysis/internal/code"
	"github.com/dpwatch/dpwatch/analysis/internal/fit"
	"github.com/dpwatch/dpwatch/internal/withheld"
)

// slotScore is the value of one measure of one group key.
var slotScore = &kind{
	name: "value", make: func(slot int) statistic { return value{slot: slot} },
	single: .299, several: .348, keeps: true, event: NumberEvent, column: true,
}

// boundedCode returns the code of a computed score: rounded, so that sums which differ by rounding errors alone are
// equal, and within a reach to both sides, within which rounding keeps its meaning. A score that the largest numbers
// make NaN (infinity minus infinity) is 0.
func boundedCode(x, reach float64) code.Code {
	if math.IsNaN(x) {
		return 0
	}
	return code.Number(fit.Grain(min(max(x, -reach), reach)))
}

// value scores the value of a slot by itself.
type value struct {
	memoryless
	slot int
}

func (v value) score(r *Result) code.Code { return r.at(v.slot) }

// learn sets the bins of a slot, or the events where its worlds share their noise.
func (v value) learn(in *Input, s *Series) {
	if s.Shared {
		in.turnPaired(s)
	} else {
		s.turn(in.pairs, in.slotBins(), &in.scratch)
	}
	s.Independence.Renew(s.Past, &in.scratch)
	in.Reader.Words[s.Slot%in.Reader.Cells()].Want(s.Binner.Categories)
}

func (v value) words(in *Input, s *Series, set uint64) withheld.Text {
	var where []withheld.Text
	r := in.Reader
	if r.Keyed {
		where = append(where, r.GroupWords(s.Slot/r.Cells()))
	}
	if s.Binner.IsPresence(set) {
		if len(where) == 0 {
			return withheld.Public("a row present")
		}
		return withheld.Sprintf("%s present", withheld.Join(where, ", "))
	}
	words := in.binWords(s, set, nounOf(r.ValueWords(s.Slot%r.Cells())))
	if len(r.Measures) > 0 {
		where = append(where, withheld.Public("column "+r.MeasureName(s.Slot%r.Cells())+":"))
	} else if r.Keyed {
		return withheld.Sprintf("%s, %s", where[0], words)
	}
	if len(where) == 0 {
		return words
	}
	return withheld.Sprintf("%s %s", withheld.Join(where, ", "), words)
}
