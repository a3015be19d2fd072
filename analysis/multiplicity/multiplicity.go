// Package multiplicity divides an error rate among many audits, and raises an alarm at a change. Numbers of audits and
// the factors of e-processes go in; shares and alarms come out. It keeps no audits and no queries.
//
// An e-process for a hypothesis is a process E >= 0 with mean at most 1 at every stopping time while the hypothesis
// holds.
package multiplicity

import (
	"math"

	"gonum.org/v1/gonum/floats"
)

// Share is the j-th part of the spending sequence 6/(pi^2 j^2), j = 1, 2, ...; all parts add up to 1. NaN for j < 1.
func Share(j int) float64 {
	if j < 1 {
		return math.NaN()
	}
	return 6 / (math.Pi * math.Pi * float64(j) * float64(j))
}

// Detector raises an alarm when an engine no longer keeps its claims: the Shiryaev-Roberts sum over start times, R_t =
// (1 + R_{t-1}) E_t, E_t the factor by which step t multiplied the wealth of the process that is at stake. While the
// claims hold R_t - t is a supermartingale, so that the mean time to the first alarm at R >= 1/alpha is at least
// 1/alpha steps (Shin, Ramdas and Rinaldo 2024, e-detectors).
type Detector struct {
	log     float64 // ln R
	started bool
}

// Step takes the log of the factor of one step (a trial, or a block of them), and reports whether the sum is at 1/alpha
// or more. NaN and +Inf count as a factor of 1. After an alarm call [Detector.Reset].
func (d *Detector) Step(logFactor, alpha float64) bool {
	if math.IsNaN(logFactor) || math.IsInf(logFactor, 1) {
		logFactor = 0
	}
	if !d.started {
		d.log, d.started = math.Inf(-1), true
	}
	d.log = floats.LogSumExp([]float64{0, d.log}) + logFactor
	return alpha > 0 && alpha < 1 && d.log >= -math.Log(alpha)
}

// LogSum is ln R; minus infinity before the first step.
func (d *Detector) LogSum() float64 {
	if !d.started {
		return math.Inf(-1)
	}
	return d.log
}

// Resume continues a detector whose LogSum was logSum, in another process for example.
func (d *Detector) Resume(logSum float64) { *d = Detector{log: logSum, started: true} }

// Reset restarts the detector.
func (d *Detector) Reset() { *d = Detector{} }
