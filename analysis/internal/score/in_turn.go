package score

import (
	"cmp"
	"slices"

	"github.com/dpwatch/dpwatch/analysis/internal/exact"
	"github.com/dpwatch/dpwatch/internal/outcome"
)

// This file chooses what a score looks at that can look at only a few columns and groups of many.

// Most columns and groups that a score looks at, at a time.
const (
	mostNeighbours = 256 // whose differences from their neighbours and from the mean of their column are compared
	mostPaired     = 16  // of which every two are compared
	mostMultiplied = 128 // of which every two are multiplied
	mostRelated    = 96  // among which any relation is looked for
	someRelated    = 32  // the same of more
	mostDivided    = 16  // whose remainders are compared
	mostFine       = 8   // whose lowest bits are beside those of noise
	mostAggregated = 4   // columns of groups
)

// inTurn returns most of n things at most, in order. Of more they are others in each block: which ones follows from the
// number of pairs alone, so that bets stay predictable. So many that follow each other come together, and those that stay
// are among them.
func (in *Input) inTurn(n, most, run int, stay ...int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	if n <= most {
		return all
	}
	first := in.pairs % run
	turns, turn := make([]uint64, n), outcome.Mix(uint64(in.pairs), 0) // once for each: close numbers have close hashes
	for i := range turns {
		turns[i] = 1 + outcome.Mix(turn, outcome.Mix(uint64((i+first)/run), 0))>>1
	}
	for _, i := range stay {
		if i < n {
			turns[i] = 0
		}
	}
	slices.SortStableFunc(all, func(i, j int) int { return cmp.Compare(turns[i], turns[j]) })
	all = all[:most]
	slices.Sort(all)
	return all
}

// stays returns the slots of a combination that is bet on.
func (m *combination) stays(s *Series) (slots []int) {
	if s.Table == nil {
		return nil
	}
	for i := range m.terms {
		slots = append(slots, m.terms[i].slot)
	}
	return slots
}

// Turns returns the scores that look at some of the columns and groups at a time.
func (in *Input) Turns() (all []exact.Turn) {
	n := len(in.Slots)
	add := func(k *kind, what string, looked, of int) {
		if looked < of && in.specials.ofKind(k) != nil {
			all = append(all, exact.Turn{What: what, Looked: looked, Of: of})
		}
	}
	if n > mostPaired {
		add(contrastScore, "pairs of columns and groups whose difference or sum is a score", mostPaired*(mostPaired-1)/2, n*(n-1)/2)
	}
	add(productsScore, "columns and groups of which every two are multiplied", mostMultiplied, n)
	if n > mostRelated {
		add(totalScore, "columns and groups among which any relation is looked for", someRelated, n)
	}
	add(fractionScore, "columns and groups whose remainders are a score", mostDivided, n)
	add(finenessScore, "columns and groups whose lowest bits are beside those of noise", mostFine, n)
	if in.Reader != nil {
		add(aggregateScore, "columns whose smallest and largest group are a score", mostAggregated, in.Reader.Cells())
	}
	return all
}
