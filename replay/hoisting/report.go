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
	// UnmodifiedRounds and HoistedRounds count the rounds returned as evidence, and Comparisons how often the two were
	// compared.
	UnmodifiedRounds int `json:"unmodified_rounds"`
	HoistedRounds    int `json:"hoisted_rounds"`
	Comparisons      int `json:"comparisons"`
}
