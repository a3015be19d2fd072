package analysis_test

import (
	"bytes"
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/curve"
	"github.com/dpwatch/dpwatch/internal/longtest"
)

// gaussianList has points of the Gaussian mechanism for (1, 1e-5), rounded up.
const gaussianList curve.Curve = "(0,0.1067) (0.2,0.0391) (0.5,0.0042) (1,1.001e-05)"

// muShift is the Gaussian mechanism with the given mu.
func muShift(mu float64) draw {
	return func(r *rand.Rand) (d0, d1 analysis.Outcome) {
		return value(gauss(r, 1/mu)), value(1 + gauss(r, 1/mu))
	}
}

func newCurve(t testing.TB, c curve.Curve, o analysis.Options) *analysis.Audit {
	t.Helper()
	a, err := analysis.New(analysis.CurveClaim(c, 0, 0), o)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestCurveIsFound: half the noise of the Gaussian mechanism for (1, 1e-5) is found in a median of about 600 pairs.
// At that point alone it takes thousands. The seeds are fixed.
func TestCurveIsFound(t *testing.T) {
	longtest.SkipFast(t)
	t.Parallel()
	for c, most := range map[curve.Curve]int{"mu=0.268": 620, gaussianList: 620, "mu=1": 60} {
		if c != "mu=1" && !longtest.Enabled() {
			continue
		}
		mu := .268
		if c == "mu=1" {
			mu = 1
		}
		var all []int
		for seed := range uint64(33) {
			r, a := rand.New(rand.NewPCG(seed, 5)), newCurve(t, c, analysis.Options{MaxTrials: 10_000})
			for !a.Decided() {
				a.Add(muShift(2 * mu)(r))
			}
			all = append(all, a.Pairs())
			got := a.Report()
			if got.Verdict != analysis.Violation {
				continue
			}
			at := curve.Point{Epsilon: float64(got.Claimed.Epsilon), Delta: got.Claimed.Delta}
			if got.Claimed.Curve != c || !slices.Contains(c.Points(), at) || !(got.EpsilonLower > got.Claimed.Epsilon) || !strings.Contains(got.Reason, "the curve "+string(c)+" does not hold") {
				t.Fatalf("%+v, epsilon %v: %s", got.Claimed, got.EpsilonLower, got.Reason)
			}
			if x := got.CurveLower.Parameter(); c.Unit() == curve.Mu && !(x >= .99*mu && x < 2*mu) || c.Unit() == curve.List && got.CurveLower != "" {
				t.Errorf("%s, true mu %g: the bound is %s", c, 2*mu, got.CurveLower)
			}
		}
		slices.Sort(all)
		t.Logf("%s: %d, median %d, %d pairs", c, all[3], all[16], all[29])
		if all[16] > most {
			t.Errorf("%s: the median of %v is above %d", c, all, most)
		}
	}
}

// TestCurveFalseAlarms is TestFalseAlarms for right mechanisms at their tight curve. Binary response of epsilon 1 keeps
// rho 0.5, and not the Gaussian curve with the same rho.
func TestCurveFalseAlarms(t *testing.T) {
	longtest.SkipFast(t)
	t.Parallel()
	const pairs = 600
	for i, c := range []struct {
		name  string
		claim curve.Curve
		d     draw
	}{
		{"gaussian at mu", "mu=0.268", muShift(.268)},
		{"gaussian at a large mu", "mu=3", muShift(3)},
		{"gaussian at rho", "rho=0.5", muShift(1)},
		{"gaussian at a list", gaussianList, muShift(.268)},
		{"response at rho", "rho=0.5", response(1)},
		{"response at a list", "(0,0.4622) (0.5,0.2879) (1,0)", response(1)},
		{"laplace at rho", "rho=0.5", laplaceShift(1)},
	} {
		if longtest.Omits(i, 5) {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			above, alarms, audits := alarmRate(func(seed uint64) bool {
				r, a := rand.New(rand.NewPCG(seed, 17)), newCurve(t, c.claim, analysis.Options{MaxTrials: pairs})
				for !a.Decided() {
					a.Add(c.d(r))
				}
				return a.DetectedAt() > 0
			})
			t.Logf("%d alarms in %d audits of %d pairs", alarms, audits, pairs)
			if above {
				t.Errorf("%d alarms in %d audits of a right mechanism: more than %v", alarms, audits, alpha)
			}
		})
	}
}

// TestRhoIsNotMu: what keeps rho 0.5 is found where mu 1 is claimed.
func TestRhoIsNotMu(t *testing.T) {
	t.Parallel()
	r, a := rand.New(rand.NewPCG(1, 2)), newCurve(t, "mu=1", analysis.Options{MaxTrials: 20_000})
	for !a.Decided() {
		a.Add(response(1)(r))
	}
	if got := a.Report(); got.Verdict != analysis.Violation || got.Claimed.Epsilon != 0 {
		t.Errorf("%s at %+v", got.Reason, got.Claimed)
	}
}

// TestCurveOfOnePoint: a list of one point is that claim, bit for bit.
func TestCurveOfOnePoint(t *testing.T) {
	t.Parallel()
	claim := analysis.Claim{Epsilon: .5, Delta: .004}
	one, err := analysis.New(claim, analysis.Options{})
	if err != nil {
		t.Fatal(err)
	}
	two := newCurve(t, curve.Of(claim.Epsilon, claim.Delta), analysis.Options{})
	r := rand.New(rand.NewPCG(3, 3))
	for range 700 {
		x, y := muShift(.6)(r)
		one.Add(x, y)
		two.Add(x, y)
		if one.Wealth() != two.Wealth() || one.DetectedAt() != two.DetectedAt() {
			t.Fatalf("after %d pairs: %v and %v", one.Pairs(), one.Wealth(), two.Wealth())
		}
	}
	if one.DetectedAt() == 0 || one.Report().EpsilonLower != two.Report().EpsilonLower {
		t.Errorf("found after %d and %d pairs", one.DetectedAt(), two.DetectedAt())
	}
}

// TestConfirmCurve: fresh trials confirm the point that the first trials refuted, and the measurement raises its bound.
// The audit is saved and restored all the while.
func TestConfirmCurve(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(9, 4))
	d := func() (d0, d1 analysis.Outcome) { return muShift(.6)(r) }
	a := newCurve(t, "mu=0.268", analysis.Options{MaxTrials: 4000, Suspicion: true})
	other := newCurve(t, "mu=0.268", analysis.Options{MaxTrials: 4000, Suspicion: true})
	add := func() {
		x, y := d()
		a.Add(x, y)
		other.Add(x, y)
		if n := a.Pairs(); n < 20 || n%37 == 0 {
			var back analysis.Audit
			if err := back.UnmarshalBinary(saved(t, other)); err != nil {
				t.Fatalf("after %d pairs: %v", n, err)
			}
			other = &back
		}
	}
	for !a.Decided() {
		add()
	}
	suspected := a.Report()
	for _, x := range []*analysis.Audit{a, other} {
		if err := x.Confirm(analysis.ConfirmationBudget(a.Pairs()), analysis.ConfirmationLevel); err != nil {
			t.Fatal(err)
		}
	}
	for !a.Decided() {
		add()
	}
	confirmed := a.Report()
	for _, x := range []*analysis.Audit{a, other} {
		if err := x.Measure(2000); err != nil {
			t.Fatal(err)
		}
	}
	for !a.Decided() {
		add()
	}
	measured := a.Report()
	if confirmed.Verdict != analysis.Violation || measured.Verdict != analysis.Violation || confirmed.Claimed != suspected.Claimed || measured.Claimed != suspected.Claimed {
		t.Errorf("%s at %+v, then %s at %+v, then %s at %+v", suspected.Reason, suspected.Claimed, confirmed.Reason, confirmed.Claimed, measured.Reason, measured.Claimed)
	}
	if x := measured.CurveLower.Parameter(); !(confirmed.EpsilonLower > confirmed.Claimed.Epsilon && measured.EpsilonLower > confirmed.EpsilonLower && x > .268 && x < .6) {
		t.Errorf("the bound is %v after the confirmation and %v, %s, after the measurement", confirmed.EpsilonLower, measured.EpsilonLower, measured.CurveLower)
	}
	x, _ := json.Marshal(measured)
	y, _ := json.Marshal(other.Report())
	if !bytes.Equal(x, y) || !bytes.Equal(saved(t, a), saved(t, other)) {
		t.Errorf("uninterrupted: %s\nrestored: %s", x, y)
	}
}

// TestCurveReports: before any violation the report is about the headline, and an engine without noise is found.
func TestCurveReports(t *testing.T) {
	t.Parallel()
	a := newCurve(t, "rho=0.5", analysis.Options{})
	headline := curve.Curve("rho=0.5").Headline()
	if got := a.Report(); float64(got.Claimed.Epsilon) != headline.Epsilon || got.Claimed.Delta != headline.Delta || got.Claimed.Curve != "rho=0.5" {
		t.Errorf("%+v", got.Claimed)
	}
	for range 100 {
		a.Add(value(1), value(2))
	}
	if got := a.Report(); got.Verdict != analysis.Violation || got.Deterministic == nil || got.CurveLower != "" {
		t.Errorf("%s, %s", got.Verdict, got.Reason)
	}
	if _, err := analysis.New(analysis.CurveClaim("mu=0.001", 0, 0), analysis.Options{MaxTrials: 2}); err == nil || !strings.Contains(err.Error(), "the curve mu=0.001 cannot be refuted with 2 pairs") {
		t.Error(err)
	}
	for _, c := range []analysis.Claim{{Curve: "mu=0.268"}, {Epsilon: 1, Curve: "nonsense"}, {Epsilon: math.NaN(), Curve: "mu=1"}} {
		if _, err := analysis.New(c, analysis.Options{}); err == nil || !strings.Contains(err.Error(), "curve") {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
