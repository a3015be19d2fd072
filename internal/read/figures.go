package read

import (
	"math"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/finding"
)

// Violation reports whether the audit has a violation that is not resolved.
func (a *Audit) Violation() bool {
	s := a.Status()
	return s == finding.Open || s == finding.Accepted
}

// Result returns the report, without figures if there is none.
func (a *Audit) Result() analysis.Report {
	if a.Report != nil {
		return *a.Report
	}
	r := analysis.Refused(analysis.Claim{Epsilon: math.NaN()}, 0, "")
	r.Verdict = ""
	return r
}

// Claim returns the claimed epsilon; NaN without a claim.
func (a *Audit) Claim() analysis.Float {
	if a.Report == nil {
		return analysis.Float(math.NaN())
	}
	return a.Report.Claimed.Epsilon
}

// Bound returns the lower bound of the present evidence; NaN without one.
func (a *Audit) Bound() analysis.Float { return analysis.Float(a.lower()) }

// Trials returns the number of pairs of trials of the present evidence.
func (a *Audit) Trials() int {
	if a.Report == nil {
		return 0
	}
	return a.Report.Trials.D0
}

// former reports whether the audit has a violation that the present evidence does not show: that of a former one.
func (a *Audit) former() bool {
	return a.Standing != nil && (a.Report == nil || a.Report.Verdict != analysis.Violation)
}

// ViolationBound returns the lower bound of the violation; NaN without one.
func (a *Audit) ViolationBound() analysis.Float {
	if a.former() {
		return a.Standing.Lower
	}
	return a.Bound()
}

// Deterministic reports whether the violation is one of answers that never vary, without any epsilon.
func (a *Audit) Deterministic() bool {
	if a.former() {
		return math.IsNaN(float64(a.Standing.Lower))
	}
	r := a.Report
	return r != nil && r.Verdict == analysis.Violation && r.Deterministic != nil && r.DetectedAt == nil
}

// Cause returns the likeliest cause of the violation in words; "" = not known.
func (a *Audit) Cause() string {
	if a.Report == nil || a.Report.Finding == nil || len(a.Report.Finding.Causes) == 0 {
		return ""
	}
	return a.Report.Finding.Causes[0].Name
}

// WaitsFor returns in words what the audit waits for; "" = nothing.
func (a *Audit) WaitsFor() string {
	switch {
	case a.Trouble != "":
		return a.Trouble
	case a.WaitingFor != nil:
		return a.WaitingFor.String()
	}
	return ""
}
