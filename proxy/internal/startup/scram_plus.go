package startup

import (
	"bytes"
	"encoding/binary"
	"net"

	"github.com/dpwatch/dpwatch/proxy/internal/wire"
)

// plusMechanism is SCRAM with channel binding (RFC 5802, RFC 7677).
const plusMechanism = "SCRAM-SHA-256-PLUS"

// authSASL is the code of AuthenticationSASL (manual, chapter 55.7).
const authSASL = 10

// maxSASL is the size of the longest AuthenticationSASL that is parsed.
const maxSASL = 8 << 10

// scramPlusFilter wraps the connection to an engine with TLS for a client without TLS. The engine then offers SCRAM-SHA-256-PLUS,
// and clients end such sessions, because without TLS they cannot bind to the channel. The filter removes that mechanism from
// AuthenticationSASL, the engine's first authentication request, and changes no other byte. After the first authentication
// message it passes all bytes through.
type scramPlusFilter struct {
	net.Conn
	done bool
	skip uint32 // bytes of the current message to pass through
	held []byte // an incomplete message
	out  []byte // to be returned
}

// Read returns the engine's bytes without that mechanism.
func (f *scramPlusFilter) Read(b []byte) (int, error) {
	for len(f.out) == 0 {
		n, err := f.Conn.Read(b)
		if f.done && len(f.held) == 0 {
			return n, err
		}
		f.take(b[:n])
		if err != nil { // the session ends: release everything held
			f.done = true
			f.out = append(f.out, f.held...)
			f.held = nil
			if len(f.out) == 0 {
				return 0, err
			}
		}
	}
	n := copy(b, f.out)
	if f.out = f.out[n:]; len(f.out) == 0 {
		f.out = nil
	}
	return n, nil
}

// NetConn returns the connection under the filter.
func (f *scramPlusFilter) NetConn() net.Conn { return f.Conn }

// CloseWrite passes the end of the stream on.
func (f *scramPlusFilter) CloseWrite() error {
	wire.CloseWrite(f.Conn)
	return nil
}

// take moves whole messages, filtered, to out.
func (f *scramPlusFilter) take(b []byte) {
	f.held = append(f.held, b...)
	for !f.done && len(f.held) > 0 {
		if f.skip > 0 {
			f.emit(int(min(f.skip, uint32(len(f.held)))))
			continue
		}
		if len(f.held) < wire.HeaderLen {
			return
		}
		length, ok := wire.Length(f.held)
		switch typ := f.held[0]; {
		case !ok:
			f.done = true
		case typ == 'v' || typ == 'N': // may precede the authentication request
			f.skip = length + 1
		case typ != 'R' || length > maxSASL:
			f.done = true
		case len(f.held) < int(length)+1:
			return
		default:
			f.out = append(f.out, withoutPlus(f.held[:length+1])...)
			f.held = f.held[length+1:]
			f.done = true
		}
	}
	if f.done {
		f.out = append(f.out, f.held...)
		f.held = nil
	}
}

func (f *scramPlusFilter) emit(n int) {
	f.out = append(f.out, f.held[:n]...)
	f.held = f.held[n:]
	f.skip -= uint32(n)
}

// withoutPlus returns the message without the mechanism. It returns other messages unchanged, and also an AuthenticationSASL
// that is malformed or has no other mechanism.
func withoutPlus(message []byte) []byte {
	body := message[wire.HeaderLen:]
	if len(body) < 4 || binary.BigEndian.Uint32(body) != authSASL {
		return message
	}
	list := body[4:]
	rest := make([]byte, 0, len(list))
	found := false
	for {
		name, tail, ok := bytes.Cut(list, []byte{0})
		switch {
		case !ok:
			return message
		case len(name) == 0 && len(tail) == 0: // the end of the list
			if !found || len(rest) == 0 {
				return message
			}
			rest = append(rest, 0)
			changed := binary.BigEndian.AppendUint32([]byte{'R'}, uint32(4+4+len(rest)))
			return append(binary.BigEndian.AppendUint32(changed, authSASL), rest...)
		case len(name) == 0:
			return message
		case string(name) == plusMechanism:
			found = true
		default:
			rest = append(append(rest, name...), 0)
		}
		list = tail
	}
}
