package analysis_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/analysis"
)

// naive is w with Laplace noise of scale 1, by the textbook's inversion in floating point.
func naive(r *rand.Rand, w float64) float64 {
	u := r.Float64() - .5
	return w - math.Copysign(math.Log(1-2*math.Abs(u)), u)
}

// TestArithmetic: naive noise in floating point is found also if the query divides, multiplies or moves the sum before
// it answers. Noisy sums on a grid, or in hundredths, are no violation. Honest audits are at the confidence 0.999999:
// each fails this test at most once in a million seeds.
func TestArithmetic(t *testing.T) {
	t.Parallel()
	hundredths := func(r *rand.Rand, w float64) float64 { return math.Round(100*(w+lap(r, 1))) / 100 }
	grid := func(r *rand.Rand, w float64) float64 { return w + lap(r, 1) }
	for name, do := range map[string]func(y float64) float64{
		"divided by 6":    func(y float64) float64 { return y / 6 },
		"divided by 1.19": func(y float64) float64 { return y / 1.19 },
		"times 1.1":       func(y float64) float64 { return y * 1.1 },
		"times 100":       func(y float64) float64 { return y * 100 },
		"plus 0.1":        func(y float64) float64 { return y + .1 },
		"minus 0.37":      func(y float64) float64 { return y - .37 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			audit := func(want analysis.Verdict, opt analysis.Options, noisy func(r *rand.Rand, w float64) float64) {
				expect(t, want, 1, opt, 7, worlds(func(r *rand.Rand, w float64) analysis.Outcome { return value(do(noisy(r, w))) }))
			}
			audit(analysis.Violation, analysis.Options{MaxTrials: 2000}, naive)
			honest := analysis.Options{MaxTrials: 2000, Confidence: .999999}
			audit(analysis.NoEvidence, honest, grid)
			audit(analysis.NoEvidence, honest, hundredths)
		})
	}
}

// TestConstants: what the query does with its constants is undone, one step and two. Noise on a grid is no violation.
// Honest audits are at the confidence 0.999999: each fails this test at most once in a million seeds.
func TestConstants(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name      string
		constants []float64
		do        func(y float64) float64
	}{
		{"divided by 37.3", []float64{37.3}, func(y float64) float64 { return y / 37.3 }},
		{"divided by 1000 times 37", []float64{37, 1000}, func(y float64) float64 { return y / 1000 * 37 }},
		{"times 1.19 plus 0.1", []float64{.1, 1.19}, func(y float64) float64 { return y*1.19 + .1 }},
		{"minus 0.3 divided by 7", []float64{7, .3}, func(y float64) float64 { return (y - .3) / 7 }},
		{"divided by 6, five others", []float64{2.3, 9, 1000, .07, 45, 6}, func(y float64) float64 { return y / 6 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			audit := func(want analysis.Verdict, opt analysis.Options, noisy func(r *rand.Rand, w float64) float64) {
				opt.Query.Constants = c.constants
				expect(t, want, 1, opt, 7, worlds(func(r *rand.Rand, w float64) analysis.Outcome { return value(c.do(noisy(r, w))) }))
			}
			audit(analysis.Violation, analysis.Options{MaxTrials: 2000}, naive)
			audit(analysis.NoEvidence, analysis.Options{MaxTrials: 2000, Confidence: .999999}, func(r *rand.Rand, w float64) float64 { return w + lap(r, 1) })
		})
	}
}

// TestFloatingPointPolicy: evidence from lowest bits alone is a violation, a warning, or nothing, and never hides other
// evidence. The honest audit is at the confidence 0.999999.
func TestFloatingPointPolicy(t *testing.T) {
	t.Parallel()
	low := worlds(func(r *rand.Rand, w float64) analysis.Outcome { return value(naive(r, w)) })
	half := worlds(func(r *rand.Rand, w float64) analysis.Outcome { return value(naive(r, 2*w)) })
	grid := worlds(func(r *rand.Rand, w float64) analysis.Outcome { return value(w + lap(r, 1)) })
	for _, c := range []struct {
		name       string
		policy     analysis.FloatingPointPolicy
		confidence float64
		d          draw
		want       analysis.Verdict
		warning    bool
	}{
		{"violation", analysis.FloatingPointViolation, 0, low, analysis.Violation, false},
		{"warning", analysis.FloatingPointWarning, 0, low, analysis.NoEvidence, true},
		{"ignore", analysis.FloatingPointIgnore, 0, low, analysis.NoEvidence, false},
		{"warning, half the noise", analysis.FloatingPointWarning, 0, half, analysis.Violation, false},
		{"ignore, half the noise", analysis.FloatingPointIgnore, 0, half, analysis.Violation, false},
		{"warning, noise on a grid", analysis.FloatingPointWarning, .999999, grid, analysis.NoEvidence, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := expect(t, c.want, 1, analysis.Options{MaxTrials: 500, FloatingPoint: c.policy, Confidence: c.confidence}, 3, c.d)
			warned := false
			for _, w := range r.Warnings {
				warned = warned || strings.Contains(w.String(), "lowest bits")
			}
			if digits := r.Event.Kind == analysis.DigitsEvent; warned != c.warning || digits != (c.policy == analysis.FloatingPointViolation) {
				t.Errorf("warnings %v, event %v", r.Warnings, r.Event)
			}
		})
	}
}
