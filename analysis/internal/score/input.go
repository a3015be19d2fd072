package score

import (
	"slices"

	"github.com/dpwatch/dpwatch/analysis/internal/bins"
	"github.com/dpwatch/dpwatch/analysis/internal/code"
	"github.com/dpwatch/dpwatch/analysis/internal/eprocess"
	"github.com/dpwatch/dpwatch/analysis/internal/exact"
	"github.com/dpwatch/dpwatch/analysis/internal/results"
	"github.com/dpwatch/dpwatch/internal/outcome"
)

// Layout is how results become codes, and what these are called.
type Layout struct {
	Reader *results.Reader
	Errors *code.Dictionary
}

// specials are the scores other than the slots.
type specials []*Series

// Input is what statistics learn from: the layout of the results, the kept past of every score, and what results
// repeat.
type Input struct {
	Layout
	Slots    []*Series // the columns of all groups
	specials specials  // the other scores
	Now      [2]Result // the current pair
	Stride   int       // of the pairs that are kept
	Repeats  Repeats
	Exact    *exact.Answers // of all layouts

	Options

	ranges    ranges
	orders    orders
	pairs     int           // at the last turn
	null      eprocess.Null // the claim
	standard  standard
	transform transform
	scratch   bins.Scratch
	order     []uint8 // scratch
}

// Options say which scores there are and what is known of the query.
type Options struct {
	Unordered bool      // the order of rows has no meaning
	LowBits   LowBits   // what is done with the scores of lowest bits
	Constants []float64 // with which the query calculates
}

// Result is what scores are computed from: a result as the reader returned it, and what came before it.
type Result struct {
	Codes []code.Code // of the slots
	cells int         // of a group
	rows  code.Code   // the number of rows, an error or another shape
	form  code.Code   // see results.Reader.FormCode
	order []int32     // keys of the rows
	exact code.Code   // see exactScore
	recalled
	ranges *ranges // of the numbers of the only slot, nil if there are several

	joint          *joint // by which laplace and gauss were computed, nil for not yet
	laplace, gauss code.Code
	ratio          code.Code // by the learned ratio
}

// at returns the code of a slot, absent if it was not seen yet.
func (r *Result) at(slot int) code.Code {
	if slot < len(r.Codes) {
		return r.Codes[slot]
	}
	return code.Category(code.Absent)
}

// setting is a set of properties of an audit's results.
type setting uint8

const (
	everyResult   setting = 1 << iota
	knownColumns          // the columns are known
	severalSlots          // there are several columns or groups
	singleValue           // there is one value
	singleNumber          // and it is a number
	orderedGroups         // there are groups, and the order of rows has a meaning
)

// settingsOf returns what holds for results of a layout.
func settingsOf(l *results.Layout, seen []*outcome.Outcome, unordered bool) setting {
	s := everyResult
	if l.Width >= 0 {
		s |= knownColumns
	}
	switch {
	case l.Keyed || len(l.Measures) > 1:
		s |= severalSlots
	case l.Width >= 0 && (anyNumber(seen) || len(l.Forms) > 0 && l.Forms[0].Parts() > 0):
		s |= singleNumber | singleValue
	case l.Width >= 0:
		s |= singleValue
	}
	if len(l.Keys) > 0 && !unordered {
		s |= orderedGroups
	}
	return s
}

// anyNumber reports whether a number is in the first row of a result.
func anyNumber(seen []*outcome.Outcome) bool {
	for _, o := range seen {
		if len(o.Rows) > 0 && len(o.Rows[0]) > 0 && o.Rows[0][0].Kind == outcome.Number {
			return true
		}
	}
	return false
}

// ofKind returns the score of a kind that is not a slot, nil for none.
func (all specials) ofKind(k *kind) *Series {
	for _, s := range all {
		if s.kind == k {
			return s
		}
	}
	return nil
}

// isNumber reports whether a single number is audited.
func (all specials) isNumber() bool {
	return slices.ContainsFunc(all, func(s *Series) bool { return s.kind.where == singleNumber })
}

// All returns the slots and the other scores.
func (in *Input) All() []*Series {
	return append(append([]*Series(nil), in.specials...), in.Slots...)
}

// Bins that are learned per score.
const (
	FewSlots       = 8   // up to here every slot has many bins and all views, and is bet on at every epsilon
	maxGridSlots   = 256 // up to here slots are bet on above the claim
	maxSpecialBins = 32
)

// searched returns the hypothesis against which the past is searched for what may be bet on: the claim, or a smaller one,
// because gaps beyond a large claim take many pairs to show.
func (in *Input) searched() eprocess.Null {
	const largest = 1
	if in.null.Epsilon <= largest {
		return in.null
	}
	return eprocess.NewNull(largest, in.null.Delta)
}

func (in *Input) slotBins() int {
	if len(in.Slots) <= FewSlots {
		return 28
	}
	return 20
}

// knows reports whether what a score has learned is used for another block.
func (in *Input) knows(s *Series) bool {
	return s.learned >= 64 && len(in.Slots) > FewSlots && 5*s.learned > 4*in.pairs
}
