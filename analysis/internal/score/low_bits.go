package score

// LowBits says what is done with the scores that read the lowest bits of numbers.
type LowBits uint8

// The ways to treat these scores.
const (
	Counted LowBits = iota // like others
	Apart                  // with wealth of their own: see Turn.Apart
	Left                   // there are none
)

// apart reports whether a score has no part of the wealth of the others.
func (in *Input) apart(s *Series) bool { return s.kind.lowBits && in.LowBits == Apart }

// LowBits reports whether the score reads the lowest bits of numbers.
func (s *Series) LowBits() bool {
	switch m := s.statistic.(type) {
	case *fraction:
		return m.modulus == 0
	case *exactly:
		return m.digits
	}
	return s.kind.lowBits
}
