package startup

import (
	"bytes"
	"encoding/binary"
	"net"
	"sync/atomic"

	"github.com/jackc/pgproto3/v2"

	"github.com/dpwatch/dpwatch/proxy/internal/wire"
)

// plusMechanism is SCRAM with channel binding (RFC 5802, RFC 7677).
const plusMechanism = "SCRAM-SHA-256-PLUS"

// plainMechanism is SCRAM without channel binding.
const plainMechanism = "SCRAM-SHA-256"

// authSASL is the code of AuthenticationSASL (manual, chapter 55.7).
const authSASL = 10

// maxSASL is the size of the longest AuthenticationSASL that is parsed.
const maxSASL = 8 << 10

// maxAuthError is the size of the longest error in place of an answer to the client's SCRAM message that is parsed.
const maxAuthError = 64 << 10

// scramPlusFilter wraps the connection to an engine with TLS for a client without TLS. The engine then offers
// SCRAM-SHA-256-PLUS, and clients end such sessions, because without TLS they cannot bind to the channel. The filter
// removes that mechanism from AuthenticationSASL, the engine's first authentication request.
//
// A client may answer that it supports channel binding and believes that the engine does not (gs2 flag y, RFC 5802,
// section 6). The engine refuses it, because it did offer channel binding: a downgrade by an attacker looks the same.
// The client's proof covers the flag, so that the filter cannot change it. It replaces the engine's error by
// unboundClient, which states the cause.
//
// The filter changes no other byte, and after the message that follows the client's first it passes all bytes through.
type scramPlusFilter struct {
	net.Conn
	refused func() // is called once with the error above; may be nil

	filtered atomic.Bool // the mechanism was removed
	flagged  atomic.Bool // the client has sent the flag y

	// Of the reader.
	done bool
	skip uint32 // bytes of the current message to pass through
	held []byte // an incomplete message
	out  []byte // to be returned

	// Of the writer.
	known bool // the client's flag is known
	first []byte
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

// Write writes the client's bytes and notes the flag in its first SCRAM message.
func (f *scramPlusFilter) Write(b []byte) (int, error) {
	if !f.known && f.filtered.Load() {
		f.look(b)
	}
	return f.Conn.Write(b)
}

// look looks for the flag in a SASLInitialResponse: type, length, mechanism, length of the data, and the data.
func (f *scramPlusFilter) look(b []byte) {
	const before = wire.HeaderLen + len(plainMechanism) + 1 + 4
	f.first = append(f.first, b[:min(len(b), before+1-len(f.first))]...)
	if len(f.first) <= before {
		return
	}
	if f.first[0] == 'p' && bytes.HasPrefix(f.first[wire.HeaderLen:], []byte(plainMechanism+"\x00")) && f.first[before] == 'y' {
		f.flagged.Store(true)
	}
	f.known, f.first = true, nil
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
		filtered := f.filtered.Load()
		switch typ := f.held[0]; {
		case !ok:
			f.done = true
		case typ == 'v' || typ == 'N': // may precede the authentication request
			f.skip = length + 1
		case typ == 'R' && !filtered && length <= maxSASL:
			if !f.replace(length, f.withoutPlus) {
				return
			}
			f.done = !f.filtered.Load()
		case typ == 'E' && filtered && f.flagged.Load() && length <= maxAuthError:
			if !f.replace(length, f.explained) {
				return
			}
			f.done = true
		default:
			f.done = true
		}
	}
	if f.done {
		f.out = append(f.out, f.held...)
		f.held = nil
	}
}

// replace moves a message, changed, to out. It returns false if the message is incomplete.
func (f *scramPlusFilter) replace(length uint32, change func([]byte) []byte) bool {
	if len(f.held) < int(length)+1 {
		return false
	}
	f.out = append(f.out, change(f.held[:length+1])...)
	f.held = f.held[length+1:]
	return true
}

func (f *scramPlusFilter) emit(n int) {
	f.out = append(f.out, f.held[:n]...)
	f.held = f.held[n:]
	f.skip -= uint32(n)
}

func (f *scramPlusFilter) withoutPlus(message []byte) []byte {
	changed, ok := withoutPlus(message)
	if ok {
		f.filtered.Store(true)
	}
	return changed
}

// explained returns unboundClient in place of the engine's error for the flag, and other errors unchanged.
func (f *scramPlusFilter) explained(message []byte) []byte {
	var e pgproto3.ErrorResponse
	if e.Decode(message[wire.HeaderLen:]) != nil || e.Code != unboundClient.Code {
		return message
	}
	changed, err := unboundClient.encode()
	if err != nil {
		return message
	}
	if f.refused != nil {
		f.refused()
	}
	return changed
}

// withoutPlus returns the message without the mechanism. It returns other messages unchanged, and also an
// AuthenticationSASL that is malformed or has no other mechanism; ok is then false.
func withoutPlus(message []byte) (changed []byte, ok bool) {
	body := message[wire.HeaderLen:]
	if len(body) < 4 || binary.BigEndian.Uint32(body) != authSASL {
		return message, false
	}
	list := body[4:]
	rest := make([]byte, 0, len(list))
	found := false
	for {
		name, tail, ok := bytes.Cut(list, []byte{0})
		switch {
		case !ok:
			return message, false
		case len(name) == 0 && len(tail) == 0: // the end of the list
			if !found || len(rest) == 0 {
				return message, false
			}
			rest = append(rest, 0)
			changed = binary.BigEndian.AppendUint32([]byte{'R'}, uint32(4+4+len(rest)))
			return append(binary.BigEndian.AppendUint32(changed, authSASL), rest...), true
		case len(name) == 0:
			return message, false
		case string(name) == plusMechanism:
			found = true
		default:
			rest = append(append(rest, name...), 0)
		}
		list = tail
	}
}
