package score

import (
	"testing"

	"github.com/dpwatch/dpwatch/analysis/internal/book"
	"github.com/dpwatch/dpwatch/analysis/internal/code"
	"github.com/dpwatch/dpwatch/analysis/internal/eprocess"
	"github.com/dpwatch/dpwatch/analysis/internal/exact"
	"github.com/dpwatch/dpwatch/analysis/internal/results"
	"github.com/dpwatch/dpwatch/internal/outcome"
)

// drive returns the scores of an audit of the claim epsilon = 1 after a number of pairs of results, which draw returns
// for D0 and for D1. The layout is learned from the first pairs. Blocks grow as those of an audit do.
func drive(t *testing.T, pairs int, draw func(world int) outcome.Outcome) *Set {
	t.Helper()
	var all []*Pair
	var seen []*outcome.Outcome
	for n := range pairs {
		d0, d1 := draw(0), draw(1)
		all = append(all, &Pair{
			Results: [2]*outcome.Outcome{&d0, &d1}, Number: n + 1, Most: pairs,
			Hashes: [2]uint64{results.Fingerprint(&d0, false), results.Fingerprint(&d1, false)},
		})
		if n < 8 {
			seen = append(seen, &d0, &d1)
		}
	}
	errors := code.NewDictionary(code.FirstError, code.OtherError)
	set := NewSet(results.NewReader(results.Learn(seen), 4096, "", errors), errors, exact.New(false, false), seen, Options{})
	mix := NewMixtures(false)
	turn := &Turn{Null: eprocess.NewNull(1, 0), Book: &book.Book{}, Mixtures: &mix}
	next := 1
	for _, p := range all {
		set.Read(p)
		set.Count(p)
		if p.Number < next {
			continue
		}
		turn.Pairs, turn.Epoch = p.Number, &book.Epoch{}
		set.Fund(turn)
		set.Learn(turn)
		set.Divide(turn)
		next += max(1, next/8)
	}
	return &set
}
