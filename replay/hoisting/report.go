// Package hoisting has the report on the hoisting of an audit, as data. Package replay, which hoists, depends on the
// SQL parser; what shows the report must not.
package hoisting

// Report is the state of hoisting in an audit.
type Report struct {
	// Hoisted reports whether trials read the tables of deterministic parts.
	Hoisted bool `json:"hoisted"`
	// Reason says why trials are not hoisted; "" before the first decision and while hoisting is on. If the reason is
	// that hoisted trials are not faster, the decision may be repeated.
	Reason string `json:"reason,omitempty"`
	// Pieces is the number of tables that a session creates for all worlds together.
	Pieces int `json:"pieces,omitempty"`
	// SpeedUp is the time of an unmodified round divided by that of a hoisted one.
	SpeedUp float64 `json:"speed_up,omitempty"`
	// Together reports whether hoisted trials share implicit transactions.
	Together bool `json:"together,omitempty"`
	// UnmodifiedRounds and HoistedRounds count the rounds returned as evidence.
	UnmodifiedRounds int `json:"unmodified_rounds"`
	HoistedRounds    int `json:"hoisted_rounds"`
	// HoistedTrials is the number of hoisted trials on each world that are evidence, and MinimalDetectable the smallest
	// true epsilon that they would have found with 90 % probability; 0 = none. Verdicts that there is no evidence count
	// trials of the whole query alone.
	HoistedTrials     int     `json:"hoisted_trials,omitempty"`
	MinimalDetectable float64 `json:"minimal_detectable_epsilon,omitempty"`
}
