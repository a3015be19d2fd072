package tap

import (
	"bytes"

	"github.com/dpwatch/dpwatch/internal/capture"
)

// maxStating is how much of a notice or a status report is read for a claim. The fields before the message of a notice
// take about 40 bytes.
const maxStating = 256

// stating reads the claims that the server states about the answer in progress. The beginning of a notice or of a status
// report is kept only until its end: it can hold values of rows.
type stating struct {
	prefix string
	lead   []byte // what the names of claims begin with
	typ    byte   // of the message that is read; 0 = none
	body   [maxStating]byte
	bytes  int
	cut    bool           // the message is longer than body
	stated capture.Stated // since the last message that ended the answer to a message of the client
}

func newStating(prefix string) *stating { return &stating{prefix: prefix, lead: []byte(prefix + ".")} }

// message begins a message with a body of this length. If it ends or suspends the answer to a statement, what was stated
// about it is returned.
func (s *stating) message(typ byte, length uint32) (stated capture.Stated) {
	s.typ = 0
	switch typ {
	case 'N', 'S':
		if length > 0 {
			s.typ, s.bytes, s.cut = typ, 0, false
		}
	case 'C', 's', 'E':
		stated, s.stated = s.stated, stated
	case 'Z', '1', '2', '3', 'n', 'I':
		s.stated = capture.Stated{}
	}
	return stated
}

// hear reads a part of a body, the last one if end is set.
func (w *Walker) hear(b []byte, end bool) {
	s := w.stating
	if s.typ == 0 {
		return
	}
	n := copy(s.body[s.bytes:], b)
	s.bytes += n
	s.cut = s.cut || n < len(b)
	if !end {
		return
	}
	stated, err := s.read()
	if err != nil {
		w.session.drainer.unread.Add(1)
	}
	s.stated = s.stated.Max(stated)
	clear(s.body[:s.bytes])
	s.typ = 0
}

// read returns the claim of the message.
func (s *stating) read() (capture.Stated, error) {
	rest := s.body[:s.bytes]
	if s.typ == 'S' {
		name, rest, _ := bytes.Cut(rest, zero)
		value, _, complete := bytes.Cut(rest, zero)
		if !complete || len(value) == 0 || !bytes.HasPrefix(name, s.lead) {
			return capture.Stated{}, nil
		}
		return capture.ParseStated(s.prefix, string(name)+"="+string(value))
	}
	for len(rest) > 0 && rest[0] != 0 {
		kind := rest[0]
		value, after, complete := bytes.Cut(rest[1:], zero)
		rest = after
		switch {
		case kind != 'M':
		case !bytes.Contains(value, s.lead):
			return capture.Stated{}, nil
		case complete:
			return capture.ParseStated(s.prefix, string(value))
		case s.cut: // it is longer than a claim
			return capture.ParseStated(s.prefix, string(value)+" ...")
		}
	}
	return capture.Stated{}, nil
}

var zero = []byte{0}
