package analysis

import (
	"math"

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
}

// Add takes the next result of each world.
func (o *Order) Add(d0, d1 Outcome) {
	if o.words == nil {
		o.words = code.NewDictionary(code.FirstText, code.OtherText)
	}
	var c [2]code.Code
	for w, r := range [2]*Outcome{&d0, &d1} {
		o.drift[w].Add(*r)
		c[w] = o.code(r)
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
func (o *Order) code(r *Outcome) code.Code {
	if r.Failed() {
		return o.words.Code("error " + r.SQLState)
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
		return code.Number(sum)
	case len(r.Rows) == 0:
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
	return o.words.Code(text)
}

// Findings returns what the order shows, without values of results; empty for nothing. For independent trials of one
// law it returns a finding with a probability of at most 2 DriftErrorRate + DependenceErrorRate.
func (o *Order) Findings() (all []string) {
	for w, name := range [2]string{"D0", "D1"} {
		if what, changed := o.drift[w].Changed(); changed {
			all = append(all, "on "+name+" the results change in "+what)
		}
	}
	if o.depend.Evidence(false) < -math.Log(DependenceErrorRate) {
		return all
	}
	top, at := math.Inf(-1), 0
	for i, e := range o.depend.Each(false) {
		if e > top {
			top, at = e, i
		}
	}
	return append(all, dependence.Relations[at].Words+" depend on each other")
}
