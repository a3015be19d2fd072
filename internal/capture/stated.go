package capture

import (
	"encoding/binary"
	"errors"
	"math"
	"strconv"
	"strings"
)

// Stated is the claim that the engine states in its answer to a query. The zero value is none.
type Stated struct {
	Epsilon, Delta, Rho, Mu float64 // 0 = not stated
	// Unclear means that what the engine states about the query is not known: the answer ended early, or the query is
	// one of several in a message.
	Unclear bool
}

// None reports whether the engine states nothing.
func (s Stated) None() bool { return s == Stated{} }

// Max returns the larger of each number of two statements about one answer.
func (s Stated) Max(t Stated) Stated {
	return Stated{max(s.Epsilon, t.Epsilon), max(s.Delta, t.Delta), max(s.Rho, t.Rho), max(s.Mu, t.Mu), s.Unclear || t.Unclear}
}

// errStated is returned by ParseStated for a claim that cannot be read. It holds nothing of the text.
var errStated = errors.New("is no claim")

// ParseStated reads a text such as "dp.epsilon=1.5, dp.delta=1e-6", where prefix is "dp". A text that does not begin
// with a number of a claim states nothing. A text that does must hold nothing else: an error of the server that quotes
// the client is no claim.
func ParseStated(prefix, text string) (s Stated, err error) {
	for i, part := range strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == ',' }) {
		name, value, _ := strings.Cut(part, "=")
		number, known := s.number(prefix, name)
		switch {
		case !known && i == 0:
			return Stated{}, nil
		case !known || *number != 0:
			return Stated{}, errStated
		}
		if *number, err = claimed(value); err != nil || *number == 0 && number != &s.Delta || s.Delta >= 1 {
			return Stated{}, errStated
		}
	}
	return s, nil
}

// number returns the number with a name, for example dp.epsilon.
func (s *Stated) number(prefix, name string) (number *float64, known bool) {
	word, of := strings.CutPrefix(name, prefix+".")
	if !of {
		return nil, false
	}
	switch word {
	case "epsilon":
		return &s.Epsilon, true
	case "delta":
		return &s.Delta, true
	case "rho":
		return &s.Rho, true
	case "mu":
		return &s.Mu, true
	}
	return nil, false
}

// claimed parses a decimal number that is finite and not negative.
func claimed(text string) (float64, error) {
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || !(x >= 0 && x <= math.MaxFloat64) || strings.ContainsAny(text, "xXpP_") {
		return 0, errStated
	}
	return x, nil
}

// StatedLen is the length of the binary form of Stated.
const StatedLen = 1 + 4*8

// AppendBinary appends the binary form, which has a fixed length.
func (s Stated) AppendBinary(dst []byte) []byte {
	unclear := byte(0)
	if s.Unclear {
		unclear = 1
	}
	dst = append(dst, unclear)
	for _, x := range [...]float64{s.Epsilon, s.Delta, s.Rho, s.Mu} {
		dst = binary.BigEndian.AppendUint64(dst, math.Float64bits(x))
	}
	return dst
}

// DecodeStated decodes the output of AppendBinary; false if it is none.
func DecodeStated(b []byte) (s Stated, ok bool) {
	if len(b) != StatedLen || b[0] > 1 {
		return Stated{}, false
	}
	s.Unclear = b[0] == 1
	for i, x := range [...]*float64{&s.Epsilon, &s.Delta, &s.Rho, &s.Mu} {
		*x = math.Float64frombits(binary.BigEndian.Uint64(b[1+8*i:]))
		if !(*x >= 0 && *x <= math.MaxFloat64) {
			return Stated{}, false
		}
	}
	return s, true
}
