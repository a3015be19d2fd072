package analysis_test

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/longtest"
)

// measured audits d until its violation is confirmed and measured, and returns the audit and the report of the
// violation.
func measured(t *testing.T, o analysis.Options, budget int, d func() (d0, d1 analysis.Outcome)) (*analysis.Audit, analysis.Report) {
	t.Helper()
	a, err := analysis.New(analysis.Claim{Epsilon: 1}, o)
	if err != nil {
		t.Fatal(err)
	}
	confirmed(t, a, d)
	before := a.Report()
	if before.Verdict != analysis.Violation {
		return a, before
	}
	if err := a.Measure(budget); err != nil {
		t.Fatal(err)
	}
	for !a.Decided() {
		a.Add(d())
	}
	return a, before
}

// TestMeasure: a violation of five times the claim is reported just above the claim. Its measurement comes within a
// third of the truth in 6,000 pairs, and leaves the verdict, the confirmation and the time of detection as they were.
// Seeds are fixed: the median of 5.
func TestMeasure(t *testing.T) {
	t.Parallel()
	var bounds []float64
	for seed := range 5 {
		r := rand.New(rand.NewPCG(uint64(seed), 5))
		a, before := measured(t, analysis.Options{}, 6000, func() (d0, d1 analysis.Outcome) { return laplaceShift(5)(r) })
		got := a.Report()
		if got.Verdict != analysis.Violation || *got.DetectedAt != *before.DetectedAt || *got.Confirmation != *before.Confirmation || got.Reason != before.Reason {
			t.Fatalf("seed %d: %s, detected at %d, %+v; want what the violation had: %s, %d, %+v",
				seed, got.Reason, *got.DetectedAt, got.Confirmation, before.Reason, *before.DetectedAt, before.Confirmation)
		}
		if m := got.Measurement; m == nil || m.State == analysis.MeasurementRunning || m.ReportedLower != before.EpsilonLower || m.Pairs != got.Trials.D0-before.Trials.D0 {
			t.Fatalf("seed %d: %+v", seed, m)
		}
		bounds = append(bounds, float64(got.EpsilonLower))
	}
	slices.Sort(bounds)
	if median := bounds[2]; median < 3.5 || median > 5 {
		t.Errorf("the median of %.3g is %.3g, want 3.5 to 5", bounds, median)
	}
}

// TestMeasurementRate: at a confidence of 0.8, at most 28 of 60 bounds exceed the true epsilon. If each did with
// probability 0.2, more would with probability below 1e-6 (binomial). Seeds are fixed.
func TestMeasurementRate(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	const truth = 2.0
	above := 0
	for seed := range 60 {
		r := rand.New(rand.NewPCG(uint64(seed), 6))
		a, _ := measured(t, analysis.Options{Confidence: .8}, 300, func() (d0, d1 analysis.Outcome) { return response(truth)(r) })
		if a.Report().EpsilonLower > truth {
			above++
		}
	}
	if above > 28 {
		t.Errorf("%d of 60 bounds exceed the true epsilon, want 28 at most", above)
	}
}

// TestMeasurementEnds: where the bound cannot grow, the measurement ends long before its budget.
func TestMeasurementEnds(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 7))
	a, _ := measured(t, analysis.Options{}, 1_000_000, func() (d0, d1 analysis.Outcome) { return response(2)(r) })
	if m := a.Report().Measurement; m == nil || m.State != analysis.Measured || m.Pairs > 100_000 {
		t.Errorf("%+v, want it measured", m)
	}
}

// TestMeasureRefuses: only a violation with a bound can be measured, once.
func TestMeasureRefuses(t *testing.T) {
	t.Parallel()
	a := newAudit(t)
	if a.Measure(100) == nil {
		t.Error("an audit without a violation is measured")
	}
	r := rand.New(rand.NewPCG(1, 8))
	a, _ = measured(t, analysis.Options{}, 10, func() (d0, d1 analysis.Outcome) { return laplaceShift(5)(r) })
	if m := a.Report().Measurement; m == nil || m.State != analysis.MeasurementExhausted || m.Pairs != 10 {
		t.Errorf("%+v, want a used budget", m)
	}
	if a.Measure(100) == nil {
		t.Error("a violation is measured twice")
	}
}

// TestSaveMeasurement: a measurement that is saved and restored goes on bit for bit.
func TestSaveMeasurement(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 9))
	a, err := analysis.New(analysis.Claim{Epsilon: 1}, analysis.Options{})
	if err != nil {
		t.Fatal(err)
	}
	d := func() (d0, d1 analysis.Outcome) { return laplaceShift(5)(r) }
	confirmed(t, a, d)
	if err := a.Measure(1500); err != nil {
		t.Fatal(err)
	}
	for two := a; !a.Decided(); {
		var back analysis.Audit
		if err := back.UnmarshalBinary(saved(t, two)); err != nil {
			t.Fatal(err)
		}
		two = &back
		for range 100 {
			x, y := d()
			a.Add(x, y)
			two.Add(x, y)
		}
		if !bytes.Equal(saved(t, a), saved(t, two)) {
			t.Fatal("the restored measurement differs")
		}
	}
}
