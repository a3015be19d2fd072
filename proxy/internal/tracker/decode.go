package tracker

import (
	"bytes"
	"encoding/binary"

	"github.com/dpwatch/dpwatch/internal/capture"
)

// reader reads the fields of one message body (manual, chapter 55.7). Reading past the end sets bad and returns zero
// values. Returned slices point into the body.
type reader struct {
	b   []byte
	bad bool
}

// cstring reads a zero-terminated string.
func (r *reader) cstring() []byte {
	i := bytes.IndexByte(r.b, 0)
	if i < 0 {
		r.bad, r.b = true, nil
		return nil
	}
	s := r.b[:i]
	r.b = r.b[i+1:]
	return s
}

func (r *reader) take(n int) []byte {
	if n < 0 || n > len(r.b) {
		r.bad, r.b = true, nil
		return nil
	}
	v := r.b[:n:n]
	r.b = r.b[n:]
	return v
}

func (r *reader) uint16() int {
	b := r.take(2)
	if b == nil {
		return 0
	}
	return int(binary.BigEndian.Uint16(b))
}

func (r *reader) uint32() uint32 {
	b := r.take(4)
	if b == nil {
		return 0
	}
	return binary.BigEndian.Uint32(b)
}

// count reads the length of a list whose items take at least size bytes each.
func (r *reader) count(size int) int {
	n := r.uint16()
	if n*size > len(r.b) {
		r.bad, r.b = true, nil
		return 0
	}
	return n
}

// done reports whether the whole body was read without an error.
func (r *reader) done() bool { return !r.bad && len(r.b) == 0 }

func (r *reader) formats() []int16 {
	n := r.count(2)
	if n == 0 {
		return nil
	}
	codes := make([]int16, n)
	for i := range codes {
		codes[i] = int16(r.uint16())
	}
	return codes
}

// parseMessage is a Parse message.
type parseMessage struct {
	name, sql []byte
	oids      []uint32
}

func decodeParse(body []byte) (parseMessage, bool) {
	r := reader{b: body}
	m := parseMessage{name: r.cstring(), sql: r.cstring()}
	if n := r.count(4); n > 0 {
		m.oids = make([]uint32, n)
		for i := range m.oids {
			m.oids[i] = r.uint32()
		}
	}
	return m, r.done()
}

// bindMessage is a Bind message. The type OIDs of the parameters are not part of it.
type bindMessage struct {
	portal, statement []byte
	params            []capture.Param
	results           []int16
}

// decodeBind reads a Bind message. The portal's name precedes the statement's. With no format code all parameters are
// text; a single one applies to all of them.
func decodeBind(body []byte) (bindMessage, bool) {
	r := reader{b: body}
	m := bindMessage{portal: r.cstring(), statement: r.cstring()}
	codes := r.formats()
	n := r.count(4)
	if len(codes) > 1 && len(codes) != n {
		return m, false // the server rejects it
	}
	if n > 0 {
		m.params = make([]capture.Param, n)
	}
	for i := range m.params {
		p := &m.params[i]
		switch len(codes) {
		case 0:
		case 1:
			p.Format = codes[0]
		default:
			p.Format = codes[i]
		}
		length := int32(r.uint32())
		if p.Null = length == -1; !p.Null {
			p.Value = r.take(int(length))
		}
	}
	m.results = r.formats()
	return m, r.done()
}

// decodeExecute returns the portal of an Execute message.
func decodeExecute(body []byte) (portal []byte, ok bool) {
	r := reader{b: body}
	portal = r.cstring()
	r.uint32() // the row limit
	return portal, r.done()
}

// decodeClose returns the kind of object that a Close message closes, 'S' for a statement or 'P' for a portal, and its
// name.
func decodeClose(body []byte) (what byte, name []byte, ok bool) {
	r := reader{b: body}
	if b := r.take(1); b != nil {
		what = b[0]
	}
	name = r.cstring()
	return what, name, r.done() && (what == 'S' || what == 'P')
}

// decodeText returns the single string of a Query or CommandComplete message.
func decodeText(body []byte) ([]byte, bool) {
	r := reader{b: body}
	s := r.cstring()
	return s, r.done()
}

// maxName is NAMEDATALEN - 1: the server compares only this many bytes of statement and portal names.
const maxName = 63

func clip(name []byte) []byte { return name[:min(len(name), maxName)] }
