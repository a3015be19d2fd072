package analysis_test

import (
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/withheld"
)

func contains(e *analysis.Event, words string) bool {
	return e != nil && strings.Contains(e.Description.Reveal(), words)
}

// warnings returns a report's warnings, with their values.
func warnings(r analysis.Report) string { return withheld.Join(r.Warnings, "; ").Reveal() }

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		claim analysis.Claim
		opts  analysis.Options
		say   string
	}{
		{"negative_epsilon", analysis.Claim{Epsilon: -1}, analysis.Options{}, "claimed epsilon"},
		{"nan_epsilon", analysis.Claim{Epsilon: math.NaN()}, analysis.Options{}, "claimed epsilon"},
		{"infinite_epsilon", analysis.Claim{Epsilon: math.Inf(1)}, analysis.Options{}, "claimed epsilon"},
		{"delta_1", analysis.Claim{Epsilon: 1, Delta: 1}, analysis.Options{}, "claimed delta"},
		{"negative_delta", analysis.Claim{Epsilon: 1, Delta: -1e-9}, analysis.Options{}, "claimed delta"},
		{"nan_delta_without_claim", analysis.Claim{Delta: math.NaN()}, analysis.Options{NoClaim: true}, "claimed delta"},
		{"confidence_1", analysis.Claim{Epsilon: 1}, analysis.Options{Confidence: 1}, "confidence"},
		{"confidence_half", analysis.Claim{Epsilon: 1}, analysis.Options{Confidence: .5}, "confidence"},
		{"negative_budget", analysis.Claim{Epsilon: 1}, analysis.Options{MaxTrials: -1}, "budget"},
		{"odds", analysis.Claim{Epsilon: 1}, analysis.Options{PriorOdds: -1}, "odds"},
		{"buckets", analysis.Claim{Epsilon: 1}, analysis.Options{Buckets: -1}, "bucket"},
		{"least_count", analysis.Claim{Epsilon: 1}, analysis.Options{MinCount: -1}, "least count"},
		{"slots", analysis.Claim{Epsilon: 1}, analysis.Options{MaxSlots: 1 << 20}, "slots"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			a, err := analysis.New(c.claim, c.opts)
			if a != nil || err == nil || !strings.Contains(err.Error(), c.say) {
				t.Errorf("got %v, %v; want an error about %q", a, err, c.say)
			}
		})
	}
}

// The pairs are ln(20) / (2 ln(1+e^-epsilon)), rounded up.
func TestNewRefusesInfeasibleBudgets(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		epsilon float64
		pairs   int
	}{{0, 3}, {1, 5}, {2, 12}, {4, 83}, {10, 32_994}} {
		var infeasible *analysis.InfeasibleError
		_, err := analysis.New(analysis.Claim{Epsilon: c.epsilon}, analysis.Options{MaxTrials: c.pairs - 1})
		if !errors.As(err, &infeasible) || infeasible.Pairs != c.pairs {
			t.Errorf("epsilon %v: got %v, want that %d pairs are needed", c.epsilon, err, c.pairs)
		}
		if _, err := analysis.New(analysis.Claim{Epsilon: c.epsilon}, analysis.Options{MaxTrials: c.pairs}); err != nil {
			t.Errorf("epsilon %v with %d pairs: %v", c.epsilon, c.pairs, err)
		}
	}
	if _, err := analysis.New(analysis.Claim{Epsilon: 1e6}, analysis.Options{}); err == nil {
		t.Error("epsilon 1e6 must be infeasible")
	}
	if _, err := analysis.New(analysis.Claim{Epsilon: 1e6}, analysis.Options{NoClaim: true}); err != nil {
		t.Errorf("without a claim nothing is infeasible: %v", err)
	}
}

// TestDeterministic holds that an engine without noise, or with the same noise every time, is found after a number of
// pairs that a small claim does not change, as a finding of its own and without an epsilon.
func TestDeterministic(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		epsilon float64
		bar     int
		d       draw
	}{
		{"integers", 1, 100, func(*rand.Rand) (d0, d1 analysis.Outcome) { return count(500), count(499) }},
		{"same_noise", 1, 24, func(*rand.Rand) (d0, d1 analysis.Outcome) { return value(math.Pi), value(math.Pi - 1) }},
		{"words", 1, 100, func(*rand.Rand) (d0, d1 analysis.Outcome) { return word("yes"), word("no") }},
		{"groups", 1, 100, func(*rand.Rand) (d0, d1 analysis.Outcome) { return groups(1, 2, 3), groups(1, 2, math.NaN()) }},
		{"epsilon_0", 0, 100, func(*rand.Rand) (d0, d1 analysis.Outcome) { return count(500), count(499) }},
		{"epsilon_4", 4, 192, func(*rand.Rand) (d0, d1 analysis.Outcome) { return count(500), count(499) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := run(t, analysis.Claim{Epsilon: c.epsilon}, 200, 1, c.d)
			if r.Verdict != analysis.Violation || r.Trials.D0 != c.bar {
				t.Fatalf("verdict %s after %d pairs, want a violation after %d", r.Verdict, r.Trials.D0, c.bar)
			}
			if !strings.Contains(r.Reason, "deterministic or cached noise") {
				t.Errorf("reason %q", r.Reason)
			}
			if d := r.Deterministic; d == nil || d.Kind != "same_answer" || !d.Differ || r.EpsilonLower != 0 || r.DetectedAt != nil {
				t.Errorf("finding %+v with a bound of %v, want the same answer without an epsilon", d, r.EpsilonLower)
			}
		})
	}
}

// TestDeterministicPolicy: what the finding means is a matter of configuration.
func TestDeterministicPolicy(t *testing.T) {
	t.Parallel()
	for policy, want := range map[analysis.DeterministicPolicy]struct {
		verdict analysis.Verdict
		finding bool
	}{
		"":                              {analysis.Violation, true},
		analysis.DeterministicViolation: {analysis.Violation, true},
		analysis.DeterministicWarning:   {analysis.Inconclusive, true},
		analysis.DeterministicIgnore:    {analysis.Inconclusive, false},
	} {
		a, err := analysis.New(analysis.Claim{Epsilon: 1}, analysis.Options{MaxTrials: 300, Deterministic: policy})
		if err != nil {
			t.Fatal(err)
		}
		for !a.Decided() {
			a.Add(count(500), count(499))
		}
		if r := a.Report(); r.Verdict != want.verdict || (r.Deterministic != nil) != want.finding || r.EpsilonLower != 0 {
			t.Errorf("policy %q: %s (%s), finding %+v", policy, r.Verdict, r.Reason, r.Deterministic)
		}
	}
	if _, err := analysis.New(analysis.Claim{}, analysis.Options{Deterministic: "no"}); err == nil {
		t.Error("an unknown policy is accepted")
	}
}

// TestAnswersThatBeginToVary: what looked deterministic is an audit like any other from then on.
func TestAnswersThatBeginToVary(t *testing.T) {
	t.Parallel()
	a, err := analysis.New(analysis.Claim{Epsilon: 1}, analysis.Options{MaxTrials: 2000, Deterministic: analysis.DeterministicWarning})
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 1))
	for i := range 1500 {
		if i < 150 {
			a.Add(count(500), count(499))
		} else {
			a.Add(count(500+geo(r, .5)), count(499+geo(r, .5)))
		}
	}
	if got := a.Report(); got.Verdict == analysis.Violation || got.Deterministic != nil {
		t.Errorf("%s (%s), finding %+v", got.Verdict, got.Reason, got.Deterministic)
	}
}

func TestSameAnswerInBothWorldsIsNoViolation(t *testing.T) {
	t.Parallel()
	r := run(t, analysis.Claim{Epsilon: 1}, 500, 1, func(*rand.Rand) (d0, d1 analysis.Outcome) { return value(5), value(5) })
	if r.Verdict != analysis.Inconclusive || !strings.Contains(r.Reason, "deterministic or cached noise") {
		t.Errorf("verdict %s, reason %q", r.Verdict, r.Reason)
	}
}

// TestCachedNoise: noise from a small stock repeats exactly. That is a finding of its own, and no epsilon: a cache does
// the same.
func TestCachedNoise(t *testing.T) {
	t.Parallel()
	r := run(t, analysis.Claim{Epsilon: 1}, 2000, 1, func(r *rand.Rand) (d0, d1 analysis.Outcome) {
		return value(math.Sqrt(float64(2 + r.IntN(3)))), value(math.Sqrt(float64(5 + r.IntN(3))))
	})
	if r.Verdict != analysis.Inconclusive || !strings.Contains(r.Reason, "repeat earlier ones exactly") || r.EpsilonLower != 0 {
		t.Errorf("verdict %s, reason %q, bound %v", r.Verdict, r.Reason, r.EpsilonLower)
	}
	if d := r.Deterministic; d == nil || d.Kind != "repeats" {
		t.Errorf("finding %+v, want repeats", d)
	}
	if !strings.Contains(warnings(r), "repeat an earlier one exactly") {
		t.Errorf("warnings %q", r.Warnings)
	}
}

// TestNarrowNoise: noise on a grid repeats by chance, also where the answers of the worlds are hundreds of scales
// apart.
func TestNarrowNoise(t *testing.T) {
	t.Parallel()
	narrow := func(r *rand.Rand) float64 { return math.Round(lap(r, 1./3)*1024) / 1024 }
	r := run(t, analysis.Claim{Epsilon: 3}, 1500, 1, func(r *rand.Rand) (d0, d1 analysis.Outcome) { return value(150 + narrow(r)), value(50 + narrow(r)) })
	if r.Verdict != analysis.Violation {
		t.Errorf("%s (%s)", r.Verdict, r.Reason)
	}
}

// TestSharedNoise holds that noise which both worlds share is noticed, and that a leak is found in spite of it.
func TestSharedNoise(t *testing.T) {
	t.Parallel()
	shared := func(epsilon float64) draw {
		return func(r *rand.Rand) (d0, d1 analysis.Outcome) {
			z := lap(r, 1/epsilon) + math.Round(r.Float64()*0x1p20)*0x1p-40 // 40 bits, exact in 1+z too
			return value(z), value(1 + z)
		}
	}
	r := run(t, analysis.Claim{Epsilon: 1}, 1000, 1, shared(.9))
	if r.Verdict != analysis.NoEvidence || !strings.Contains(warnings(r), "share their noise") {
		t.Errorf("verdict %s, warnings %q", r.Verdict, r.Warnings)
	}
	if r := run(t, analysis.Claim{Epsilon: 1}, 3000, 1, shared(4)); r.Verdict != analysis.Violation {
		t.Errorf("a true epsilon of 4 with shared noise: %s (%s)", r.Verdict, r.Reason)
	}
}

func TestNoClaim(t *testing.T) {
	t.Parallel()
	a, err := analysis.New(analysis.Claim{}, analysis.Options{NoClaim: true, MaxTrials: 2000})
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 1))
	d := laplaceShift(2)
	for !a.Decided() {
		a.Add(d(r))
	}
	got := a.Report()
	if got.Verdict != analysis.Inconclusive || got.Reason != "no claim" || got.DetectedAt != nil {
		t.Errorf("verdict %s, reason %q", got.Verdict, got.Reason)
	}
	if lower := float64(got.EpsilonLower); lower < 1.2 || lower > 2 {
		t.Errorf("bound %v for a true epsilon of 2", lower)
	}
}

// TestBound holds the bound near the truth from below. How often it is above is what TestBoundCovers checks.
func TestBound(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ claim, true, least float64 }{{2, 1, .75}, {1, .5, .33}, {8, 4, 3}} {
		r := run(t, analysis.Claim{Epsilon: c.claim}, 6000, 2, laplaceShift(c.true))
		if lower := float64(r.EpsilonLower); lower < c.least {
			t.Errorf("claim %v, true %v: bound %v, want at least %v", c.claim, c.true, lower, c.least)
		}
		if r.Verdict == analysis.Violation {
			t.Errorf("claim %v, true %v: %s", c.claim, c.true, r.Reason)
		}
	}
}

func TestInconclusive(t *testing.T) {
	t.Parallel()
	a, err := analysis.New(analysis.Claim{Epsilon: 4}, analysis.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if r := a.Report(); r.Verdict != analysis.Inconclusive || r.Reason != "no trials" {
		t.Errorf("before any trial: %s, %q", r.Verdict, r.Reason)
	}
	for range 20 {
		a.Add(value(1), value(1))
	}
	if r := a.Report(); r.Verdict != analysis.Inconclusive || !strings.Contains(r.Reason, "83") {
		t.Errorf("20 pairs against epsilon 4: %s, %q", r.Verdict, r.Reason)
	}
	r := run(t, analysis.Claim{Epsilon: 1}, 100, 1, func(*rand.Rand) (d0, d1 analysis.Outcome) {
		return failed("57014"), failed("57014")
	})
	if r.Verdict != analysis.Inconclusive || r.Reason != "every trial fails: SQLSTATE 57014" {
		t.Errorf("only errors: %s, %q", r.Verdict, r.Reason)
	}
}

func TestReportJSON(t *testing.T) {
	t.Parallel()
	r := run(t, analysis.Claim{Epsilon: 1}, 100, 1, func(*rand.Rand) (d0, d1 analysis.Outcome) { return count(500), count(499) })
	r.Claimed.Source = "flag"
	raw, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(raw, &got); err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, k := range []string{
		"verdict", "reason", "claimed", "epsilon_lower", "confidence", "error_rate", "epsilon_estimate", "wealth_log", "trials", "event",
		"attacker", "detected_at", "minimal_detectable_epsilon", "partitions", "warnings", "clopper_pearson", "deterministic", "confirmation",
		"control", "measurement", "finding", "windows", "minimal_detectable_epsilon_in_tenth", "minimal_detectable_factor",
	} {
		if _, ok := got[k]; !ok {
			keys = append(keys, k)
		}
	}
	if len(keys) > 0 || len(got) != 24 {
		t.Errorf("keys missing %v of %s", keys, raw)
	}
	if diff := cmp.Diff(map[string]any{"epsilon": 1., "delta": 0., "source": "flag"}, got["claimed"]); diff != "" {
		t.Error(diff)
	}
	if got["epsilon_estimate"] != nil {
		t.Errorf("the estimate of disjoint worlds must be null, not %v", got["epsilon_estimate"])
	}
	var back analysis.Report
	if err := json.Unmarshal(raw, &back); err != nil {
		t.Fatal(err)
	}
	if !math.IsNaN(float64(back.EpsilonEstimate)) || back.EpsilonLower != r.EpsilonLower {
		t.Errorf("read back: %+v", back)
	}
}

func TestAttacker(t *testing.T) {
	t.Parallel()
	a, err := analysis.New(analysis.Claim{Epsilon: 3}, analysis.Options{MaxTrials: 4000, PriorOdds: .5, BreachOdds: 2})
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 1))
	d := response(2.5)
	for !a.Decided() {
		a.Add(d(r))
	}
	// The ratio of randomised response is e^2.5 = 12.2; the standard error of its logarithm is sqrt(.92/(4000*.076)) =
	// .055. ln 1.4 is six of them and ln .6 nine: a false alarm has a probability of 1e-9.
	got := a.Report().Attacker
	if ratio := float64(got.LikelihoodRatio); math.Abs(ratio/math.Exp(2.5)-1) > .4 {
		t.Errorf("likelihood ratio %v, want about %v", ratio, math.Exp(2.5))
	}
	if got.PosteriorOdds != got.LikelihoodRatio/2 || !got.Breached {
		t.Errorf("%+v", got)
	}
}
