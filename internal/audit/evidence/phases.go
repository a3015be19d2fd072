package evidence

import "github.com/dpwatch/dpwatch/analysis"

// phases are the control, the confirmation and the measurement of a violation, and what was known before each.
type phases struct {
	before   []*analysis.Report // during a confirmation: the reports of the neighbours that are not confirmed; nil = the neighbour is confirmed
	earlier  []analysis.Drift   // during a confirmation: drifts before it
	measured []*analysis.Report // during a measurement: the reports of the neighbours that are not measured; nil = the neighbour is measured
	between  []analysis.Drift   // during a measurement: drifts of the confirmation

	control *control // of the present suspicion; nil = none has begun

	unconfirmed []Unconfirmed // by neighbour; nil = none
}

// Confirming reports whether a confirmation has begun.
func (p *phases) Confirming() bool { return p.before != nil }

// settled reports whether a confirmation or a measurement excludes a neighbour.
func (p *phases) settled(i int) bool {
	return p.before != nil && p.before[i] != nil || p.measured != nil && p.measured[i] != nil
}

// Measuring reports whether a measurement has begun.
func (p *phases) Measuring() bool { return p.measured != nil }

// Settled reports for each world, D0 first, whether a confirmation or a measurement does not need its trials; nil
// before a confirmation.
func (p *phases) Settled() []bool {
	if !p.Confirming() {
		return nil
	}
	worlds := make([]bool, 1+len(p.before))
	for i := range p.before {
		worlds[i+1] = p.settled(i)
	}
	return worlds
}
