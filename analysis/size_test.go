package analysis_test

import (
	"math"
	"math/rand/v2"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/longtest"
)

// heapAfter returns the bytes in use that fill adds, after collection.
func heapAfter(fill func() *analysis.Audit) (uint64, *analysis.Audit) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	a := fill()
	runtime.GC()
	runtime.ReadMemStats(&after)
	if after.HeapAlloc < before.HeapAlloc {
		return 0, a
	}
	return after.HeapAlloc - before.HeapAlloc, a
}

// TestHostileSizes feeds more categories, larger results and longer texts than can be audited one by one: the memory
// stays within what the package promises and the report says what was left out. Not parallel: it measures the heap.
func TestHostileSizes(t *testing.T) {
	longtest.Skip(t)
	longtest.SkipFast(t)
	const most = 64 << 20
	audit := func(t *testing.T) *analysis.Audit {
		a, err := analysis.New(analysis.Claim{Epsilon: 1}, analysis.Options{MaxTrials: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	t.Run("a_million_categories", func(t *testing.T) {
		size, a := heapAfter(func() *analysis.Audit {
			a := audit(t)
			analysis.SkipBound(a)
			r := rand.New(rand.NewPCG(9, 9))
			for range int(longtest.Count(70_000, 200_000)) {
				a.Add(word("word "+strconv.FormatUint(r.Uint64(), 10)), word("word "+strconv.FormatUint(r.Uint64(), 10)))
			}
			return a
		})
		if r := a.Report(); size > most || r.Verdict == analysis.Violation {
			t.Errorf("%d MiB, %s (%s)", size>>20, r.Verdict, r.Reason)
		}
	})
	t.Run("a_hundred_thousand_groups", func(t *testing.T) {
		xs := make([]float64, 100_000)
		size, a := heapAfter(func() *analysis.Audit {
			a := audit(t)
			for range 20 {
				a.Add(groups(xs...), groups(xs...))
			}
			return a
		})
		r := a.Report()
		if size > most || r.Verdict == analysis.Violation || len(r.Partitions) != 4096 || r.Partitions[4095].Key.Reveal() != "store_id=4095" {
			t.Errorf("%d MiB, %s (%s), %d partitions", size>>20, r.Verdict, r.Reason, len(r.Partitions))
		}
		if len(r.Warnings) == 0 {
			t.Error("nothing is said about the groups that were left out")
		}
	})
	t.Run("many_groups_for_long", func(t *testing.T) {
		x, y := groups(make([]float64, 4096)...), groups(make([]float64, 4096)...)
		r := rand.New(rand.NewPCG(8, 8))
		size, a := heapAfter(func() *analysis.Audit {
			a := audit(t)
			for range 400 {
				for i := range x.Rows {
					x.Rows[i][1].Num, y.Rows[i][1].Num = lap(r, 1), lap(r, 1)
				}
				a.Add(x, y)
			}
			return a
		})
		if r := a.Report(); size > most || r.Verdict == analysis.Violation {
			t.Errorf("%d MiB, %s (%s)", size>>20, r.Verdict, r.Reason)
		}
	})
	t.Run("texts_of_a_mebibyte", func(t *testing.T) {
		long := strings.Repeat("x", 1<<20)
		size, a := heapAfter(func() *analysis.Audit {
			a := audit(t)
			for i := range 150 {
				n := strconv.Itoa(i)
				a.Add(word(long+n), word(long+n))
			}
			return a
		})
		if r := a.Report(); size > most || r.Verdict == analysis.Violation {
			t.Errorf("%d MiB, %s (%s)", size>>20, r.Verdict, r.Reason)
		}
	})
}

// TestLongTexts: texts that differ behind what is kept of them are different outcomes, and different keys.
func TestLongTexts(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 1<<19)
	t.Run("outcomes", func(t *testing.T) {
		t.Parallel()
		a, err := analysis.New(analysis.Claim{Epsilon: 1}, analysis.Options{})
		if err != nil {
			t.Fatal(err)
		}
		r := rand.New(rand.NewPCG(4, 4))
		for range 120 {
			a.Add(word(long+strconv.Itoa(r.IntN(3))), word(long+strconv.Itoa(3+r.IntN(3))))
		}
		if r := a.Report(); r.Verdict != analysis.Violation {
			t.Errorf("%s (%s)", r.Verdict, r.Reason)
		}
	})
	t.Run("keys", func(t *testing.T) {
		t.Parallel()
		a, err := analysis.New(analysis.Claim{Epsilon: 1}, analysis.Options{})
		if err != nil {
			t.Fatal(err)
		}
		row := func(key string, x float64) []analysis.Value {
			return []analysis.Value{{Kind: analysis.Text, Text: key}, {Kind: analysis.Number, Num: x}}
		}
		for i := range 40 {
			o := analysis.Outcome{Rows: [][]analysis.Value{row(long+"a", float64(i)), row(long+"b", float64(-i)), row(long+"c", 0)}}
			a.Add(o, o)
		}
		if r := a.Report(); len(r.Partitions) != 3 {
			t.Errorf("%d partitions, want 3", len(r.Partitions))
		}
	})
}

// TestEdgesOfClaims: claims of 0, deltas close to 1 and budgets beyond reason give a verdict that can be defended.
func TestEdgesOfClaims(t *testing.T) {
	t.Parallel()
	revealing := func(a *analysis.Audit, n int) analysis.Report {
		rng := rand.New(rand.NewPCG(4, 4))
		for range n {
			a.Add(value(float64(rng.IntN(7))), value(float64(100+rng.IntN(7))))
		}
		return a.Report()
	}
	for _, c := range []struct {
		name  string
		claim analysis.Claim
		pairs int
		want  analysis.Verdict
	}{
		{"nothing_may_leak", analysis.Claim{}, 60, analysis.Violation},
		{"almost_everything_may_leak", analysis.Claim{Epsilon: 1, Delta: .99}, 300, analysis.NoEvidence},
		{"too_little_to_say", analysis.Claim{Epsilon: 1, Delta: .999999}, 300, analysis.Inconclusive},
		{"no_trial", analysis.Claim{Epsilon: 1}, 0, analysis.Inconclusive},
		{"two_trials", analysis.Claim{Epsilon: 1}, 2, analysis.Inconclusive},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			a, err := analysis.New(c.claim, analysis.Options{MaxTrials: 1 << 40})
			if err != nil {
				t.Fatal(err)
			}
			r := revealing(a, c.pairs)
			checkNumbers(t, r)
			if c.want == analysis.NoEvidence && r.Verdict == analysis.Inconclusive {
				return // saying less is right too
			}
			if r.Verdict != c.want {
				t.Errorf("%s (%s), want %s", r.Verdict, r.Reason, c.want)
			}
		})
	}
	for _, c := range []analysis.Claim{{Epsilon: math.Inf(1)}, {Epsilon: -1}, {Epsilon: math.NaN()}, {Epsilon: 1, Delta: 1}, {Epsilon: 1, Delta: math.NaN()}, {Epsilon: 800}} {
		if _, err := analysis.New(c, analysis.Options{}); err == nil {
			t.Errorf("%+v: taken", c)
		}
	}
}

func checkNumbers(t *testing.T, r analysis.Report) {
	t.Helper()
	if math.IsNaN(float64(r.WealthLog)) || math.IsNaN(float64(r.EpsilonLower)) {
		t.Errorf("not a number: %+v", r)
	}
}
