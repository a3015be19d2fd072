package finding

import (
	"math"
	"slices"
)

// Severity is how urgent a finding is, in PagerDuty's words.
type Severity string

// The severities, the lowest first.
const (
	Info     Severity = "info"
	Warning  Severity = "warning"
	Error    Severity = "error"
	Critical Severity = "critical"
)

// Severities returns all severities, the lowest first.
func Severities() []Severity { return []Severity{Info, Warning, Error, Critical} }

// AtLeast reports whether s is least or a higher severity; every severity is at least "".
func (s Severity) AtLeast(least Severity) bool {
	return slices.Index(Severities(), s) >= slices.Index(Severities(), least)
}

// Excess is a row of a Scale: violations that exceed their claim by Least or more have the severity.
type Excess struct {
	Least    float64
	Severity Severity
}

// Scale is how the severity of a violation follows from its size, ascending.
type Scale []Excess

// Severity returns the severity of a violation from what was measured: how far the estimate of epsilon exceeds the
// claim or, without a finite estimate above it, the lower bound. A NaN bound is that of deterministic answers: no
// epsilon holds, which is the last row.
func (s Scale) Severity(claimed, lower, estimate float64) Severity {
	excess := lower - claimed
	if !math.IsInf(estimate, 0) && estimate > lower {
		excess = estimate - claimed
	}
	severity := Info
	for _, row := range s {
		if excess >= row.Least || math.IsNaN(lower) {
			severity = row.Severity
		}
	}
	return severity
}
