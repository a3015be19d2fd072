package score

import (
	"math"
	"slices"

	"github.com/dpwatch/dpwatch/analysis/internal/code"
	"github.com/dpwatch/dpwatch/analysis/internal/event"
	"github.com/dpwatch/dpwatch/analysis/internal/results"
	"github.com/dpwatch/dpwatch/analysis/internal/state"
	"github.com/dpwatch/dpwatch/internal/withheld"
)

// textScore is a number or a character in texts that have no fixed form: an element of an array of random length, a
// number after a key of a document with optional parts, a value in an error or a notice, a character of a hash; or the
// number of digits after the point in one of several columns. The past decides which.
var textScore = &kind{
	name: "text_part", make: func(int) statistic { return new(textPart) }, where: everyResult, single: .001, several: .001,
	views: []event.View{event.Ascending, event.Sorted}, lifetime: lifetime{pairs: 65, learned: 1, growth: 1.5},
	event: FormEvent, whole: true,
	phrase: func(in *Input, e *Event) withheld.Text {
		return in.Reader.TextReadingName(e.Series.statistic.(*textPart).reading)
	},
}

// textPart scores a result by one of its readings: results.Reader.TextNumbers, after them TextCharacters, then Places.
type textPart struct{ reading int }

const (
	firstPlaces  = results.TextReadings + results.TextCharacters
	textReadings = firstPlaces + results.PlaceReadings
)

// leastTextPart is the squared studentised gap of an event in the past (searched) from which a reading is bet on: there
// are many readings.
const leastTextPart = 20

func (m *textPart) score(r *Result) code.Code {
	i, bytes := m.reading-results.TextReadings, r.characters
	if m.reading >= firstPlaces {
		i, bytes = m.reading-firstPlaces, r.places
	}
	switch {
	case i >= 0 && i < len(bytes):
		return ofByte(bytes[i])
	case i < 0 && m.reading < len(r.texts):
		return r.texts[m.reading]
	}
	return code.Category(code.Absent)
}

// ofByte returns the code of a byte of results.Reader.TextCharacters and Places.
func ofByte(b byte) code.Code {
	if b == 0 {
		return code.Category(code.Absent)
	}
	return code.Number(float64(b - 1))
}

func (m *textPart) fit(in *Input, _ *Series) (scores [2][]code.Code, differ bool) {
	top, best := float64(leastTextPart), m.reading
	for i := range textReadings {
		past := in.texts.of(i)
		if len(past[0]) < leastJoint || shareNoise(past) {
			continue
		}
		t := Series{kind: textScore, Past: past}
		t.relearn(len(past[0]), maxSpecialBins, &in.scratch)
		if z2 := event.Strength(in.searched(), t.Table, &in.order); z2 > top {
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

func (m *textPart) words(in *Input, s *Series, set uint64) withheld.Text {
	return withheld.Sprintf("%s: %s", in.Reader.TextReadingName(m.reading), in.binWords(s, set, nounOf("value", "values")))
}

func (m *textPart) state(c *state.Codec) {
	state.Num(c, &m.reading)
	c.Check(m.reading >= 0 && m.reading < textReadings)
}

// texts are the readings of texts of the latest kept pairs, per world: for each pair TextReadings codes, TextCharacters
// bytes and PlaceReadings bytes. Each is empty until a result has what is read.
type texts struct {
	numbers            [2][]code.Code
	characters, places [2][]byte
}

// textPast is the number of pairs that are kept at most; half as many stay when there are more.
const textPast = 256

// add takes a pair.
func (t *texts) add(now *[2]Result) {
	keepTexts(&t.numbers, [2][]code.Code{now[0].texts, now[1].texts}, results.TextReadings, code.Category(code.Absent))
	keepTexts(&t.characters, [2][]byte{now[0].characters, now[1].characters}, results.TextCharacters, 0)
	keepTexts(&t.places, [2][]byte{now[0].places, now[1].places}, results.PlaceReadings, 0)
}

// keepTexts appends the readings of a pair: a number of them, or none.
func keepTexts[T any](past *[2][]T, now [2][]T, readings int, none T) {
	if len(past[0])+len(now[0])+len(now[1]) == 0 {
		return
	}
	for w := range past {
		if p := past[w]; len(p) == textPast*readings {
			past[w] = p[:copy(p, p[len(p)/2:])]
		}
		if len(now[w]) == 0 {
			now[w] = slices.Repeat([]T{none}, readings)
		}
		past[w] = append(past[w], now[w]...)
	}
}

// of returns the past of a reading; none if it is the same in all results.
func (t *texts) of(reading int) (past [2][]code.Code) {
	varies := false
	bytes, first, width := &t.characters, results.TextReadings, results.TextCharacters
	if reading >= firstPlaces {
		bytes, first, width = &t.places, firstPlaces, results.PlaceReadings
	}
	for w := range past {
		if reading >= first {
			for k := reading - first; k < len(bytes[w]); k += width {
				past[w] = append(past[w], ofByte(bytes[w][k]))
			}
		} else {
			for k := reading; k < len(t.numbers[w]); k += results.TextReadings {
				past[w] = append(past[w], t.numbers[w][k])
			}
		}
		varies = varies || slices.ContainsFunc(past[w], func(c code.Code) bool { return math.Float64bits(c) != math.Float64bits(past[0][0]) })
	}
	if !varies {
		return [2][]code.Code{}
	}
	return past
}

// TextsSize returns how many bytes of memory the readings of texts take.
func (set *Set) TextsSize() (n int) {
	for w := range set.texts.numbers {
		n += 8*cap(set.texts.numbers[w]) + cap(set.texts.characters[w]) + cap(set.texts.places[w])
	}
	return n
}

func (t *texts) state(c *state.Codec) {
	for w := range t.numbers {
		c.Floats(&t.numbers[w])
		c.Check(len(t.numbers[w]) == len(t.numbers[0]) && len(t.numbers[w])%results.TextReadings == 0 && len(t.numbers[w]) <= textPast*results.TextReadings)
		bytesState(c, &t.characters, w, results.TextCharacters)
		bytesState(c, &t.places, w, results.PlaceReadings)
	}
}

func bytesState(c *state.Codec, past *[2][]byte, w, readings int) {
	text := string(past[w])
	c.Text(&text)
	if c.Reading {
		past[w] = []byte(text)
	}
	c.Check(len(text) == len(past[0]) && len(text)%readings == 0 && len(text) <= textPast*readings)
}
