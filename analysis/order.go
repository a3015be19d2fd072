package analysis

import (
	"cmp"
	"math"
	"strings"

	"github.com/dpwatch/dpwatch/analysis/internal/bins"
	"github.com/dpwatch/dpwatch/analysis/internal/code"
	"github.com/dpwatch/dpwatch/analysis/internal/dependence"
)

// Order tests results in the order in which they were recorded: whether the law of a world changes, and whether trials
// depend on each other. Of each result it uses one outcome: how it failed, else the sum of its numbers, else the texts
// of its first row. It is not safe for concurrent use. The zero value is ready.
type Order struct {
	drift  [2]Drift
	depend dependence.Independence
	past   [2][]code.Code
	words  *code.Dictionary
	sc     bins.Scratch
	sorted [2]sortedness
}

// Add takes the next result of each world.
func (o *Order) Add(d0, d1 Outcome) {
	if o.words == nil {
		o.words = code.NewDictionary(code.FirstText, code.OtherText)
	}
	var c [2]code.Code
	for w, r := range [2]*Outcome{&d0, &d1} {
		o.drift[w].Add(*r)
		c[w] = o.code(r, &o.sorted[w])
	}
	o.depend.Add(c[0], c[1])
	for w := range c {
		if len(o.past[w]) == 2*dependence.MarkValues {
			o.past[w] = append(o.past[w][:0], o.past[w][dependence.MarkValues:]...)
		}
		o.past[w] = append(o.past[w], c[w])
	}
	o.depend.Renew(o.past, &o.sc)
}

// code returns the outcome of a result that is used.
func (o *Order) code(r *Outcome, s *sortedness) code.Code {
	if r.Failed() {
		return o.word("error "+r.SQLState, s)
	}
	sum, numbers := 0.0, false
	for _, row := range r.Rows {
		for _, v := range row {
			if v.Kind == Number {
				sum, numbers = sum+v.Num, true
			}
		}
	}
	switch {
	case numbers:
		s.add(sum, "")
		return code.Number(sum)
	case len(r.Rows) == 0:
		s.add(math.Inf(-1), "")
		return code.Category(code.Absent)
	}
	text := ""
	for _, v := range r.Rows[0] {
		switch v.Kind {
		case Text:
			text += "\x00" + v.Text
		case Bool:
			text += "\x00" + code.BoolWord(v.Num)
		default:
			text += "\x01"
		}
	}
	return o.word(text, s)
}

// word returns the outcome of a text.
func (o *Order) word(text string, s *sortedness) code.Code {
	s.add(math.Inf(1), text)
	return o.words.Code(text)
}

// Findings returns what the order shows, without values of results; empty for nothing. For independent trials of one
// law it returns a finding with a probability of at most 2 DriftErrorRate + DependenceErrorRate.
func (o *Order) Findings() []string {
	all := o.changes()
	if d := o.dependence(false); d != "" {
		all = append(all, d)
	}
	return all
}

// Temper returns the report of results that were recorded in this order and analyzed in it (inOrder) or in random
// order. Shuffling hides that trials depend on each other, and does not undo it: every verdict is then inconclusive. In
// random order, a violation is inconclusive if the law of a world changes, too. Results that are sorted have no order
// of execution that could be tested. In order, the noise that the trials of a pair share is accounted for.
func (o *Order) Temper(r Report, inOrder bool) Report {
	const remedy = ". Run each trial in a session of its own; if the order of the lines has nothing to do with their execution, shuffle the lines of each file"
	depend, changes := o.dependence(inOrder), o.changes()
	switch {
	case o.sorted[0].sorted() && o.sorted[1].sorted():
		return r
	case depend != "":
		return r.inconclusive("trials depend on each other: in the order of the files " + depend + remedy)
	case !inOrder && len(changes) > 0 && r.Verdict == Violation:
		return r.inconclusive("in the order of the files " + strings.Join(changes, ", ") + remedy)
	}
	return r
}

// changes returns which figures of a world change, empty for none.
func (o *Order) changes() (all []string) {
	for w, name := range [2]string{"D0", "D1"} {
		if what, changed := o.drift[w].Changed(); changed {
			all = append(all, "on "+name+" the results change in "+what)
		}
	}
	return all
}

// dependence returns which trials depend on each other, empty for none. Relations between the worlds are left out if
// the noise that they share is accounted for.
func (o *Order) dependence(shared bool) string {
	if o.depend.Evidence(shared) < -math.Log(DependenceErrorRate) {
		return ""
	}
	top, at := math.Inf(-1), 0
	for i, e := range o.depend.Each(shared) {
		if e > top {
			top, at = e, i
		}
	}
	return dependence.Relations[at].Words + " depend on each other"
}

// sortedness records whether outcomes ascend or descend.
type sortedness struct {
	seen, up, down bool
	number         float64
	text           string
}

// add takes the next outcome: a number, or infinity and a text.
func (s *sortedness) add(number float64, text string) {
	c := cmp.Or(cmp.Compare(number, s.number), strings.Compare(text, s.text))
	if s.seen {
		s.up, s.down = s.up || c > 0, s.down || c < 0
	}
	s.seen, s.number, s.text = true, number, text
}

// sorted reports whether the outcomes only ascend or only descend. Outcomes that never vary are sorted.
func (s *sortedness) sorted() bool { return !(s.up && s.down) }
