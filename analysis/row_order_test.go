package analysis_test

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/analysis"
)

// inOrder is groups with Laplace noise, in the given order.
func inOrder(r *rand.Rand, order ...int) analysis.Outcome {
	xs := make([]float64, len(order))
	for i := range xs {
		xs[i] = 10 + lap(r, 1)
	}
	o := groups(xs...)
	rows := slices.Clone(o.Rows)
	for i, k := range order {
		o.Rows[i] = rows[k]
	}
	return o
}

// twoFirst is groups in random order, the first two of which come in their order with probability p on D0 and q on D1.
func twoFirst(n int, p, q float64) draw {
	one := func(r *rand.Rand, p float64) analysis.Outcome {
		order := r.Perm(n)
		if i, j := slices.Index(order, 0), slices.Index(order, 1); i < j != (r.Float64() < p) {
			order[i], order[j] = order[j], order[i]
		}
		return inOrder(r, order...)
	}
	return func(r *rand.Rand) (d0, d1 analysis.Outcome) { return one(r, p), one(r, q) }
}

// TestRowOrder: the order of rows convicts where it alone differs, of few groups and of many, and is named without the
// keys. The seeds are fixed.
func TestRowOrder(t *testing.T) {
	t.Parallel()
	moved := make([]int, 40)
	for i := range moved {
		moved[i] = i
	}
	late := slices.Insert(slices.Delete(slices.Clone(moved), 3, 4), 30, 3)
	for _, c := range []struct {
		name string
		most int
		d    draw
	}{
		{"reversed", 60, func(r *rand.Rand) (d0, d1 analysis.Outcome) { return inOrder(r, 0, 1), inOrder(r, 1, 0) }},
		{"one_of_many_moved", 60, func(r *rand.Rand) (d0, d1 analysis.Outcome) { return inOrder(r, moved...), inOrder(r, late...) }},
		{"two_of_six", 200, twoFirst(6, .9, .1)},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := run(t, analysis.Claim{Epsilon: 1}, c.most, 5, c.d)
			if r.Verdict != analysis.Violation || r.Event == nil || r.Event.Kind != analysis.OrderEvent {
				t.Fatalf("%s (%s), event %+v", r.Verdict, r.Reason, r.Event)
			}
			if got := r.Event.Description.String(); strings.Contains(got, "store_id=") || !contains(r.Event, "store_id=") {
				t.Errorf("%q, revealed %q", got, r.Event.Description.Reveal())
			}
		})
	}
}

// TestHonestRowOrder: an order by noisy values, one that leaks no more than is claimed, and one that is the same in
// both worlds convict nobody. The seeds are fixed.
func TestHonestRowOrder(t *testing.T) {
	t.Parallel()
	byValue := func(r *rand.Rand, x float64) analysis.Outcome {
		o := groups(x+lap(r, 1), lap(r, 1), lap(r, 1))
		slices.SortFunc(o.Rows, func(a, b []analysis.Value) int { return cmp.Compare(a[1].Num, b[1].Num) })
		return o
	}
	p := math.E / (1 + math.E)
	for name, d := range map[string]draw{
		"by_noisy_value": worlds(byValue),
		"response":       twoFirst(3, p, 1-p),
		"alike":          twoFirst(6, .8, .8),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if r := run(t, analysis.Claim{Epsilon: 1}, 1000, 6, d); r.Verdict == analysis.Violation {
				t.Errorf("%s (%s), event %+v", r.Verdict, r.Reason, r.Event)
			}
		})
	}
}

// TestDependentRowOrder: orders that persist for many trials, the same in both worlds by law, are no violation.
func TestDependentRowOrder(t *testing.T) {
	t.Parallel()
	var kept [2]bool
	d := func(r *rand.Rand) (d0, d1 analysis.Outcome) {
		var o [2]analysis.Outcome
		for w := range kept {
			if r.IntN(40) == 0 {
				kept[w] = !kept[w]
			}
			if o[w] = inOrder(r, 0, 1); kept[w] {
				o[w] = inOrder(r, 1, 0)
			}
		}
		return o[0], o[1]
	}
	if r := run(t, analysis.Claim{Epsilon: 1}, 1000, 6, d); r.Verdict == analysis.Violation {
		t.Errorf("%s (%s), event %+v", r.Verdict, r.Reason, r.Event)
	}
}

// TestRowOrderState: an audit that looks at the order of rows is restored bit for bit, before and after orders varied.
func TestRowOrderState(t *testing.T) {
	t.Parallel()
	n := 0
	later := func(r *rand.Rand) (d0, d1 analysis.Outcome) {
		if n++; n < 80 {
			return inOrder(r, 0, 1, 2), inOrder(r, 0, 1, 2)
		}
		return twoFirst(3, .7, .4)(r)
	}
	sameAfterRestore(t, later, 120)
	sameAfterRestore(t, twoFirst(4, .7, .4), 120)
}
