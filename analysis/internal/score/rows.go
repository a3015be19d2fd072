package score

import (
	"math"

	"github.com/dpwatch/dpwatch/analysis/internal/code"
	"github.com/dpwatch/dpwatch/analysis/internal/event"
	"github.com/dpwatch/dpwatch/internal/withheld"
)

// This file holds the scores whose bins are learned from their own past: the number of rows and the lowest bits.

// binned is a statistic whose bins are learned from the past of its own score.
type binned struct{ memoryless }

func (binned) learn(in *Input, s *Series) { s.turn(in.pairs, maxSpecialBins, &in.scratch) }

// rowsScore is the number of rows, an error or another shape.
var rowsScore = &kind{
	name: "rows", make: func(int) statistic { return rowCount{} }, where: everyResult,
	single: .01, several: .12, views: []event.View{event.Ascending, event.Sorted}, keeps: true, lopsided: true, event: RowsEvent,
	phrase: rowsPhrase,
}

type rowCount struct{ binned }

func (rowCount) score(r *Result) code.Code { return r.rows }

func (rowCount) words(in *Input, s *Series, set uint64) withheld.Text {
	return in.binWords(s, set, nounOf("number of rows", "numbers of rows"))
}

// rowsPhrase describes an event of the number of rows or of errors.
func rowsPhrase(in *Input, e *Event) withheld.Text {
	words := in.Words(e.Series, e.Set)
	if e.Kind == ErrorEvent {
		return withheld.Sprintf("the query fails (%s)", words)
	}
	return words
}

// lowBitScore is the lowest bit set in any number of the result.
var lowBitScore = &kind{
	name: "low_bit", make: func(int) statistic { return lowestBits{} }, where: everyResult,
	single: .05, several: .02, views: []event.View{event.Ascending}, prior: SupportPrior, keeps: true, lopsided: true, lowBits: true, event: DigitsEvent,
	phrase: lowBitPhrase,
}

type lowestBits struct{ binned }

// score returns the least of the lowest bits set in the numbers of a result.
func (lowestBits) score(r *Result) code.Code {
	least := math.Inf(1)
	for _, c := range r.Codes {
		if code.IsNumber(c) {
			least = min(least, code.LowestBit(c))
		}
	}
	if math.IsInf(least, 1) {
		return code.Category(code.Absent)
	}
	return least
}

func (lowestBits) words(in *Input, s *Series, set uint64) withheld.Text {
	return withheld.Sprintf("lowest bits of the numbers: %s", in.binWords(s, set, nounOf("exponent", "exponents")))
}

func lowBitPhrase(_ *Input, e *Event) withheld.Text {
	switch {
	case e.Kind == AbsenceEvent:
		return withheld.Public("an answer without a number")
	case e.Tail == AnyTail:
		return withheld.Public("an answer with a number")
	}
	return withheld.Public("numbers whose lowest bits fit the noise of this dataset alone (floating point)")
}
