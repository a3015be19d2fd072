package evidence

// Stage is what the next trials are for. Each stage has rounds of other worlds, or of other sessions.
type Stage uint8

// The stages.
const (
	Searching  Stage = iota // D0 and the neighbours
	Control                 // D0 and its twin
	Confirming              // the twin, or D0 if there is none, and the neighbours
)

// Stage returns the present stage.
func (p *phases) Stage() Stage {
	switch {
	case p.Controlling():
		return Control
	case p.Confirming():
		return Confirming
	}
	return Searching
}

// Proceed begins the next stage after trials that showed a violation (see Found): the control if there is a twin, and
// then the confirmation.
func (e *Evidence) Proceed(twin bool) error {
	if twin && e.control == nil {
		return e.Control()
	}
	return e.Confirm()
}

// Separate reports whether each trial must have a separate session.
func (p *phases) Separate() bool {
	return p.Confirming() || p.Controlling() && p.control.Separate
}
