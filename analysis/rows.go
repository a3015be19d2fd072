package analysis

import (
	"math"

	"github.com/dpwatch/dpwatch/analysis/internal/book"
	"github.com/dpwatch/dpwatch/analysis/internal/code"
	"github.com/dpwatch/dpwatch/analysis/internal/event"
	"github.com/dpwatch/dpwatch/internal/withheld"
)

// This file holds the scores whose bins are learned from their own past: the number of rows and the lowest bits.

// rowsScore is the number of rows, an error or another shape.
var rowsScore = &kind{
	name: "rows", make: func(int) statistic { return rowCount{} }, where: everyResult,
	single: .01, several: .12, views: []event.View{event.Ascending, event.Sorted}, keeps: true, lopsided: true, event: RowsEvent,
}

type rowCount struct{ memoryless }

func (rowCount) score(r *result) code.Code { return r.rows }

func (rowCount) learn(a *Audit, s *series, _ *book.Epoch) {
	s.turn(a.pairs, maxSpecialBins, &a.scratch)
}

func (rowCount) words(a *Audit, s *series, set uint64) withheld.Text {
	return a.binWords(s, set, nounOf("number of rows", "numbers of rows"))
}

// lowBitScore is the lowest bit set in any number of the result.
var lowBitScore = &kind{
	name: "low_bit", make: func(int) statistic { return lowestBits{} }, where: everyResult,
	single: .05, several: .02, views: []event.View{event.Ascending}, prior: supportPrior, keeps: true, lopsided: true, event: DigitsEvent,
}

type lowestBits struct{ memoryless }

// score returns the least of the lowest bits set in the numbers of a result.
func (lowestBits) score(r *result) code.Code {
	least := math.Inf(1)
	for _, c := range r.codes {
		if code.IsNumber(c) {
			least = min(least, code.LowestBit(c))
		}
	}
	if math.IsInf(least, 1) {
		return code.Category(code.Absent)
	}
	return least
}

func (lowestBits) learn(a *Audit, s *series, _ *book.Epoch) {
	s.turn(a.pairs, maxSpecialBins, &a.scratch)
}

func (lowestBits) words(a *Audit, s *series, set uint64) withheld.Text {
	return withheld.Sprintf("lowest bits of the numbers: %s", a.binWords(s, set, nounOf("exponent", "exponents")))
}
