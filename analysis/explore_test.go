package analysis_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dpwatch/dpwatch/analysis"
)

func TestExplore(t *testing.T) {
	runs, _ := strconv.Atoi(os.Getenv("RUNS"))
	if runs == 0 {
		t.Skip()
	}
	nan := math.NaN()
	for _, c := range []struct {
		name         string
		claim, delta float64
		most         int
		d            draw
	}{
		{"fixed 5 vs 7", 1, 0, 100, func(*rand.Rand) (a, b analysis.Outcome) { return value(5), value(7) }},
		{"fixed cont", 1, 0, 100, func(*rand.Rand) (a, b analysis.Outcome) { return value(math.Pi), value(math.E) }},
		{"fixed cont .1", .1, 0, 100, func(*rand.Rand) (a, b analysis.Outcome) { return value(math.Pi), value(math.E) }},
		{"fixed eps 4", 4, 0, 1000, func(*rand.Rand) (a, b analysis.Outcome) { return value(5), value(7) }},
		{"low bits", 1, 0, 1000, func(r *rand.Rand) (a, b analysis.Outcome) {
			return value(r.ExpFloat64() - r.ExpFloat64()), value(1 + r.ExpFloat64() - r.ExpFloat64())
		}},
		{"low bits2", 1, 0, 1000, func(r *rand.Rand) (a, b analysis.Outcome) {
			l := func() float64 { u := r.Float64() - .5; return -math.Copysign(1, u) * math.Log(1-2*math.Abs(u)) }
			return value(l()), value(1 + l())
		}},
		{"nondp laplace .1", .1, 0, 2000, func(r *rand.Rand) (a, b analysis.Outcome) { return value(lap(r, 2/.1)), value(.5 + lap(r, 1/.1)) }},
		{"nondp laplace .01", .01, 0, 2000, func(r *rand.Rand) (a, b analysis.Outcome) { return value(lap(r, 2/.01)), value(.5 + lap(r, 1/.01)) }},
		{"nondp laplace 1", 1, 0, 4000, func(r *rand.Rand) (a, b analysis.Outcome) { return value(lap(r, 2/1.)), value(.5 + lap(r, 1/1.)) }},
		{"nondp gauss .1", .1, 1e-5, 2000, func(r *rand.Rand) (a, b analysis.Outcome) { return value(gauss(r, 2/.1)), value(.5 + gauss(r, 1/.1)) }},
		{"nondp gauss .01", .01, 1e-5, 2000, func(r *rand.Rand) (a, b analysis.Outcome) { return value(gauss(r, 2/.01)), value(.5 + gauss(r, 1/.01)) }},
		{"nondp gauss 1", 1, 1e-5, 2000, func(r *rand.Rand) (a, b analysis.Outcome) { return value(gauss(r, 2/1.)), value(.5 + gauss(r, 1/1.)) }},
		{"rr 1.5", 1, 0, 3000, response(1.5)},
		{"rr 2", 1, 0, 3000, response(2)},
		{"10 groups .3", 1, 0, 4000, many(10, func(int) float64 { return .3125 })},
		{"200 groups .33", 1, 0, 3000, many(200, func(int) float64 { return .328125 })},
		{"200 groups one 2", 1, 0, 3000, many(200, func(i int) float64 {
			if i == 17 {
				return 2
			}
			return 0
		})},
		{"1 group 2", 1, 0, 3000, many(1, func(i int) float64 { return 2 })},
		{"presence", 1, 1e-4, 3000, func(r *rand.Rand) (a, b analysis.Outcome) {
			x := nan
			if r.Float64() < .5 {
				x = 1 + lap(r, 1)
			}
			return groups(lap(r, 1), lap(r, 1), x), groups(lap(r, 1), lap(r, 1), nan)
		}},
		{"rows", 1, 0, 3000, func(r *rand.Rand) (a, b analysis.Outcome) {
			f := func(p float64) analysis.Outcome {
				x := make([]float64, 100)
				for i := range x {
					x[i] = lap(r, 1)
					if r.Float64() > p {
						x[i] = nan
					}
				}
				return groups(x...)
			}
			return f(.55), f(.45)
		}},
		{"null on empty", 1, 0, 3000, func(r *rand.Rand) (a, b analysis.Outcome) {
			o := value(0)
			o.Rows[0][0] = analysis.Value{}
			return value(lap(r, 1)), o
		}},
		{"error", 1, 0, 3000, func(r *rand.Rand) (a, b analysis.Outcome) {
			if r.Float64() < .2 {
				return failed("22012"), value(lap(r, 1))
			}
			return value(lap(r, 1)), value(lap(r, 1))
		}},
		{"shared noise eps1", 1, 0, 3000, func(r *rand.Rand) (a, b analysis.Outcome) { z := lap(r, 1); return value(z), value(1 + z) }},
		{"shared noise eps2", 1, 0, 3000, func(r *rand.Rand) (a, b analysis.Outcome) { z := lap(r, .5); return value(z), value(1 + z) }},
		{"antithetic eps1", 1, 0, 3000, func(r *rand.Rand) (a, b analysis.Outcome) { z := lap(r, 1); return value(z), value(1 - z) }},
		{"presence delta tight", 1, .05, 3000, func(r *rand.Rand) (a, b analysis.Outcome) {
			x := nan
			if r.Float64() < .05 {
				x = 1 + lap(r, 1)
			}
			return groups(lap(r, 1), lap(r, 1), x), groups(lap(r, 1), lap(r, 1), nan)
		}},
		{"presence delta over", 1, .05, 3000, func(r *rand.Rand) (a, b analysis.Outcome) {
			x := nan
			if r.Float64() < .2 {
				x = 1 + lap(r, 1)
			}
			return groups(lap(r, 1), lap(r, 1), x), groups(lap(r, 1), lap(r, 1), nan)
		}},
		{"cached world", 1, 0, 3000, func(r *rand.Rand) (a, b analysis.Outcome) {
			return value(math.Sqrt(float64(2 + r.IntN(10)))), value(math.Sqrt(float64(3 + r.IntN(10))))
		}},
		{"H0 laplace 1", 1, 0, 3000, laplaceShift(1)},
		{"H0 rr 1", 1, 0, 3000, response(1)},
		{"H0 geo 1", 1, 0, 3000, func(r *rand.Rand) (a, b analysis.Outcome) { return count(geo(r, 1)), count(1 + geo(r, 1)) }},
		{"H0 groups", 1, 0, 600, many(200, func(i int) float64 {
			if i == 17 {
				return 1
			}
			return 0
		})},
	} {
		if w := os.Getenv("ONLY"); w != "" && !strings.Contains(c.name, w) {
			continue
		}
		var at []int
		start := time.Now()
		n := runs
		if c.most*strings.Count(c.name, "200") > 0 {
			n = max(1, n/10)
		}
		for i := range n {
			at = append(at, detected(t, analysis.Claim{Epsilon: c.claim, Delta: c.delta}, c.most, uint64(i), c.d))
		}
		slices.Sort(at)
		found := 0
		for _, v := range at {
			if v <= c.most {
				found++
			}
		}
		rep := run(t, analysis.Claim{Epsilon: c.claim, Delta: c.delta}, c.most, 1, c.d)
		desc := ""
		if rep.Event != nil {
			desc = rep.Event.Score + ": " + rep.Event.Description
		}
		fmt.Printf("%-20s median %d q90 %d found %.1f%% %v | %s %s lower %.3f est %.2f lr %.2f\n", c.name, at[n/2], at[n*9/10], 100*float64(found)/float64(n), time.Since(start).Round(time.Millisecond), rep.Verdict, desc, rep.EpsilonLower, rep.EpsilonEstimate, rep.Attacker.LikelihoodRatio)
	}
}
