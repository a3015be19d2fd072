package read

import (
	"fmt"
	"math"

	"github.com/dpwatch/dpwatch/analysis/multiplicity"
)

// FalseAlarms is how often audits of identical data alarmed: control audits, of D0 against its twin. An audit counts
// once for each version of the copies.
type FalseAlarms struct {
	Audits       int     `json:"control_audits"` // decided with or without an alarm
	Alarms       int     `json:"alarms"`         // of them, those that ended with a violation
	Inconclusive int     `json:"inconclusive"`   // besides
	RateUpper    float64 `json:"rate_upper"`     // bound of the rate of alarms, however often it is read, rounded up
	Confidence   float64 `json:"confidence"`     // of the bound
}

// falseAlarmConfidence is the confidence of the upper bound of the rate of false alarms.
const falseAlarmConfidence = 0.95

// NewFalseAlarms returns the figures of control audits that ended with an alarm, without one, or inconclusive.
func NewFalseAlarms(alarms, others, inconclusive int) FalseAlarms {
	upper := multiplicity.RateUpper(alarms, alarms+others, 1-falseAlarmConfidence)
	return FalseAlarms{alarms + others, alarms, inconclusive, math.Ceil(upper*1e4) / 1e4, falseAlarmConfidence}
}

// Text says the figures in one sentence.
func (f *FalseAlarms) Text() string {
	if f.Audits == 0 {
		return "not measured yet"
	}
	return fmt.Sprintf("on identical data %d of %d control audits, a rate of at most %.3g %% (confidence %.3g %%)", f.Alarms, f.Audits, 100*f.RateUpper, 100*f.Confidence)
}
