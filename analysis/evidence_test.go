package analysis_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/analysis/multiplicity"
	"github.com/dpwatch/dpwatch/internal/longtest"
)

func batch(t testing.TB, name string, c analysis.Claim, n int, seed uint64, d draw) analysis.Evidence {
	t.Helper()
	a, err := analysis.New(c, analysis.Options{MaxTrials: n})
	if err != nil {
		t.Fatal(err)
	}
	analysis.SkipBound(a)
	r := rand.New(rand.NewPCG(seed, 5))
	for range n {
		a.Add(d(r))
	}
	return a.Evidence(name)
}

// TestMerge: four batches, none of which convicts, do together; of right mechanisms the joint bound passes the truth in
// at most 5 % (more than 6 of 10 has a probability below 9e-8, and 5 of 5 one of 3.2e-7).
func TestMerge(t *testing.T) {
	longtest.Skip(t)
	longtest.SkipFast(t)
	t.Parallel()
	claim := analysis.Claim{Epsilon: 1}
	joint := func(seed uint64, epsilon float64) (lower float64, alone int) {
		var all analysis.Evidence
		for i := range 4 {
			e := batch(t, fmt.Sprint("batch ", i), claim, 100, 100*seed+uint64(i), laplaceShift(epsilon))
			if e.Lower() > 1 {
				alone++
			}
			if i == 0 {
				all = e
				continue
			}
			var err error
			if all, err = all.Merge(e); err != nil {
				t.Fatal(err)
			}
		}
		if all.Pairs != 400 || len(all.Batches) != 4 {
			t.Errorf("%d pairs in %v", all.Pairs, all.Batches)
		}
		return all.Lower(), alone
	}
	found, false, seeds := 0, 0, longtest.Count(5, 10)
	for seed := range seeds {
		if lower, alone := joint(seed, 2); lower > 1 && alone < 4 {
			found++
		}
		if lower, _ := joint(seed, 1); lower > 1 {
			false++
		}
	}
	t.Logf("found %d, false %d of %d", found, false, seeds)
	if found < 3 || false > int(longtest.Count(4, 6)) {
		t.Errorf("found %d, false %d of %d", found, false, seeds)
	}
}

func TestMergeRefuses(t *testing.T) {
	t.Parallel()
	one := batch(t, "a", analysis.Claim{Epsilon: 1}, 20, 1, laplaceShift(1))
	other := func(change func(*analysis.Evidence)) analysis.Evidence {
		e := batch(t, "b", analysis.Claim{Epsilon: 1}, 20, 2, laplaceShift(1))
		change(&e)
		return e
	}
	for name, e := range map[string]analysis.Evidence{
		"same_batch": other(func(e *analysis.Evidence) { e.Batches = []string{"a"} }),
		"claim":      batch(t, "b", analysis.Claim{Epsilon: 2}, 20, 2, laplaceShift(1)),
		"delta":      batch(t, "b", analysis.Claim{Epsilon: 1, Delta: 1e-6}, 20, 2, laplaceShift(1)),
		"confidence": other(func(e *analysis.Evidence) { e.Confidence = .9 }),
		"grid":       other(func(e *analysis.Evidence) { e.Grid[3].Epsilon = 7 }),
		"nan":        other(func(e *analysis.Evidence) { e.Grid[3].LogWealth = math.NaN() }),
		"nothing":    {},
	} {
		var refused *analysis.MergeError
		if _, err := one.Merge(e); !errors.As(err, &refused) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestEngine: queries that claim 1 and spend 1.1, too few trials each to convict, are found together; right ones are
// not (the wealth of a right engine reaches 10^6 with a probability of at most 1e-6).
func TestEngine(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	pooled := func(epsilon float64, queries int) float64 {
		var pool multiplicity.Pool
		for q := range queries {
			a, err := analysis.New(analysis.Claim{Epsilon: 1}, analysis.Options{MaxTrials: 1000})
			if err != nil {
				t.Fatal(err)
			}
			analysis.SkipBound(a)
			r := rand.New(rand.NewPCG(uint64(q), 9))
			for range 1000 {
				a.Add(laplaceShift(epsilon)(r))
			}
			if !pool.Set(fmt.Sprint(q), a.Components()) {
				t.Fatal("components refused")
			}
		}
		return pool.LogWealth()
	}
	bad, good := pooled(1.1, 50), pooled(1, 20)
	t.Logf("log-wealth: leaking engine %.2f, right engine %.2f", bad, good)
	if !(bad >= math.Log(20)) || good >= math.Log(1e6) {
		t.Errorf("log-wealth: leaking engine %v, right engine %v", bad, good)
	}
}
