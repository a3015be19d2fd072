package score

import (
	"math"

	"github.com/dpwatch/dpwatch/analysis/internal/code"
	"github.com/dpwatch/dpwatch/analysis/internal/event"
	"github.com/dpwatch/dpwatch/analysis/internal/results"
	"github.com/dpwatch/dpwatch/analysis/internal/state"
	"github.com/dpwatch/dpwatch/internal/withheld"
)

// textScore is a number in texts that have no fixed form: an element of an array of random length, a number after a
// key of a document with optional parts, a value in an error or a notice. The past decides which.
var textScore = &kind{
	name: "text_number", make: func(int) statistic { return new(textNumber) }, where: everyResult, single: .001, several: .001,
	views: []event.View{event.Ascending, event.Sorted}, lifetime: lifetime{pairs: 65, learned: 1, growth: 1.5},
	event: FormEvent, whole: true,
	phrase: func(in *Input, e *Event) withheld.Text {
		return in.Reader.TextReadingName(e.Series.statistic.(*textNumber).reading)
	},
}

// textNumber scores a result by one of its readings (results.Reader.TextNumbers).
type textNumber struct{ reading int }

func (m *textNumber) score(r *Result) code.Code {
	if m.reading < len(r.texts) {
		return r.texts[m.reading]
	}
	return code.Category(code.Absent)
}

func (m *textNumber) fit(in *Input, _ *Series) (scores [2][]code.Code, differ bool) {
	top, best := float64(leastAggregate), m.reading
	for i := range results.TextReadings {
		past := in.texts.of(i)
		if len(past[0]) < leastJoint || shareNoise(past) {
			continue
		}
		t := Series{kind: textScore, Past: past}
		t.relearn(len(past[0]), maxSpecialBins, &in.scratch)
		if z2 := event.Strength(in.null, t.Table, &in.order); z2 > top {
			top, differ, best, scores = z2, true, i, past
		}
	}
	m.reading = best
	return scores, differ
}

// shareNoise reports whether the two worlds share the noise of a score, or nothing varies.
func shareNoise(past [2][]code.Code) bool {
	var w watch
	for k := range past[0] {
		if w.add(past[0][k], past[1][k]) {
			return true
		}
	}
	return false
}

func (m *textNumber) words(in *Input, s *Series, set uint64) withheld.Text {
	return withheld.Sprintf("%s: %s", in.Reader.TextReadingName(m.reading), in.binWords(s, set, nounOf("value", "values")))
}

func (m *textNumber) state(c *state.Codec) {
	state.Num(c, &m.reading)
	c.Check(m.reading >= 0 && m.reading < results.TextReadings)
}

// texts are the numbers in texts of the latest kept pairs: per world, TextReadings codes for each pair. They are empty
// until a result has such a text.
type texts struct{ past [2][]code.Code }

// textPast is the number of pairs that are kept at most; half as many stay when there are more.
const textPast = 256

// add takes a pair.
func (t *texts) add(now *[2]Result) {
	if len(t.past[0])+len(now[0].texts)+len(now[1].texts) == 0 {
		return
	}
	for w := range t.past {
		if p := t.past[w]; len(p) == textPast*results.TextReadings {
			t.past[w] = p[:copy(p, p[len(p)/2:])]
		}
		for i := range results.TextReadings {
			t.past[w] = append(t.past[w], (&textNumber{i}).score(&now[w]))
		}
	}
}

// of returns the past of a reading; none if it never was a number, or is the same in all results.
func (t *texts) of(reading int) (past [2][]code.Code) {
	varies := false
	for w, p := range t.past {
		for k := reading; k < len(p); k += results.TextReadings {
			past[w] = append(past[w], p[k])
			varies = varies || math.Float64bits(p[k]) != math.Float64bits(past[0][0])
		}
	}
	if !varies {
		return [2][]code.Code{}
	}
	return past
}

// filled reports whether a reading is a number in most of the latest results.
func (t *texts) filled(reading int) bool {
	there := 0
	for _, p := range t.past {
		for k := reading; k < len(p); k += results.TextReadings {
			there += code.Bit(code.IsNumber(p[k]))
		}
	}
	return 2*there*results.TextReadings > len(t.past[0])+len(t.past[1])
}

func (t *texts) state(c *state.Codec) {
	for w := range t.past {
		c.Floats(&t.past[w])
		c.Check(len(t.past[w]) == len(t.past[0]) && len(t.past[w])%results.TextReadings == 0 && len(t.past[w]) <= textPast*results.TextReadings)
	}
}
