package capture

import "encoding/binary"

// Settled counts what the auditor process was given and has a lasting record of: the ledger or the spool has it, or its
// count among the skipped statements.
type Settled struct {
	Queries uint64 // captured queries
	Counted uint64 // statements that the relay only counted
}

// AppendBinary appends the binary form.
func (s Settled) AppendBinary(b []byte) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(b, s.Queries), s.Counted)
}

// DecodeSettled decodes the output of AppendBinary; false if it is none.
func DecodeSettled(b []byte) (s Settled, ok bool) {
	if len(b) != 16 {
		return s, false
	}
	return Settled{binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:])}, true
}
