package proxy

import (
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"go.uber.org/zap"
)

// Request codes in the version field (manual, chapter 55.7).
const (
	cancelCode = 1234<<16 | 5678
	sslCode    = 1234<<16 | 5679
	gssCode    = 1234<<16 | 5680
)

// Lengths of the packets before authentication, in bytes, including the length word. After its length word a startup packet
// can have 10,000 bytes (MAX_STARTUP_PACKET_LENGTH in pqcomm.h); a cancel key has 4 to 256.
const (
	maxStartup  = 4 + 10_000
	minStartup  = 8
	minCancel   = 16
	maxCancel   = 268
	requestSize = 8 // SSLRequest and GSSENCRequest; the engine ignores the content of a longer one
)

// tlsRecord is the first byte of a TLS handshake; no startup packet within the limit begins with it.
const tlsRecord = 0x16

// tlsAlert is a fatal handshake_failure alert (RFC 8446, section 6), which TLS clients report properly.
var tlsAlert = [...]byte{0x15, 3, 1, 0, 2, 2, 40}

// startup holds what a client sent up to its StartupMessage or CancelRequest.
type startup struct {
	packet  []byte // the StartupMessage or CancelRequest, with its length
	rest    []byte // the bytes after it
	version uint32
	conn    net.Conn          // the client leg from here on: as accepted, or TLS over it
	leaf    *x509.Certificate // the certificate shown to the client; nil without TLS
	peer    net.Addr          // the client's address, from the PROXY protocol header if one came
}

// errQuiet ends a connection without an answer and without a log entry: the client has gone.
var errQuiet = errors.New("closed before a startup message")

// errStartupTimeout means that the client was too slow, or that the server is shutting down.
var errStartupTimeout = errors.New("no complete startup message in time")

// errDirectTLS means that the client began with a TLS handshake.
var errDirectTLS = errors.New("client began with TLS")

// readStartup reads the messages before authentication: SSLRequest and GSSENCRequest, each at most once, or direct TLS, then
// a StartupMessage or CancelRequest. It follows ProcessStartupPacket of PostgreSQL. A *refusedError holds the answer for the
// client. Any other error ends the connection without an answer, as in PostgreSQL: a client that disconnects before its
// startup (node-postgres sends Terminate then) must not read an error. The startup is never nil.
func (s *Server) readStartup(client net.Conn) (*startup, error) {
	start := &startup{conn: client, peer: client.RemoteAddr()}
	p := packetReader{conn: client}
	if s.trusts(client.RemoteAddr()) {
		if err := p.proxyHeader(start); err != nil {
			return start, err
		}
	}
	ssl, gss, first := false, false, true
	for {
		packet, err := p.next()
		if errors.Is(err, errDirectTLS) && first {
			ssl, gss, first = true, true, false
			s.counters.directTLS.Add(1)
			if err := s.directTLS(&p, start); err != nil {
				return start, err
			}
			continue
		}
		if err != nil {
			return start, err
		}
		first = false
		code := binary.BigEndian.Uint32(packet[4:])
		switch {
		case code == sslCode && !ssl:
			ssl = true
			s.counters.sslRequests.Add(1)
		case code == gssCode && !gss:
			gss = true
			s.counters.gssRequests.Add(1)
		case code == sslCode || code == gssCode:
			return start, &refusedError{unsupportedProtocol(code)}
		default:
			start.packet, start.rest, start.version = packet, p.buf, code
			return start, nil
		}
		mode := s.opts.ClientTLS.Mode
		if len(p.buf) > 0 { // not sent inside TLS, so possibly injected (CVE-2021-23214)
			if code == gssCode || mode == TLSDisable { // the error follows in plain text, as from the engine
				_, _ = client.Write([]byte{'N'})
			}
			return start, &refusedError{unencryptedData(code)}
		}
		switch {
		case code == sslCode && mode == TLSPassthrough:
			if s.pass(client, packet, false) {
				return start, errQuiet
			}
		case code == sslCode && mode != TLSDisable:
			gss = true // not inside TLS
			if _, err := client.Write([]byte{'S'}); err != nil {
				return start, errQuiet
			}
			if err := s.beginTLS(&p, start, false); err != nil {
				return start, err
			}
		default:
			if _, err := client.Write([]byte{'N'}); err != nil {
				return start, errQuiet
			}
		}
	}
}

// directTLS handles a client that began with TLS; p holds the first bytes.
func (s *Server) directTLS(p *packetReader, start *startup) error {
	switch s.opts.ClientTLS.Mode {
	case TLSDisable:
		return errDirectTLS
	case TLSPassthrough:
		s.pass(start.conn, p.buf, true)
		return errQuiet
	default:
		return s.beginTLS(p, start, true)
	}
}

// beginTLS continues the startup inside TLS.
func (s *Server) beginTLS(p *packetReader, start *startup, direct bool) error {
	leg, leaf, err := s.clientTLS.handshake(start.conn, p.buf, direct)
	if err != nil {
		s.counters.tlsFailed.Add(1)
		s.log.Info("connection closed", zap.Stringer("client", start.peer), zap.Error(err))
		return errQuiet
	}
	start.conn, start.leaf = leg, leaf
	*p = packetReader{conn: leg, secured: true}
	return nil
}

// packetReader reads untyped packets: a length that includes itself, then the body.
type packetReader struct {
	conn    net.Conn
	buf     []byte // read, not yet returned
	secured bool   // inside TLS
}

// next returns the next packet. The caller owns its memory.
func (p *packetReader) next() ([]byte, error) {
	for {
		n, err := packetLength(p.buf)
		if p.secured && errors.Is(err, errDirectTLS) {
			err = errors.New("TLS within TLS")
		}
		if err != nil {
			return nil, err
		}
		if n > 0 && len(p.buf) >= n {
			packet := p.buf[:n:n]
			p.buf = p.buf[n:]
			return packet, nil
		}
		if err := p.fill(); err != nil {
			return nil, err
		}
	}
}

// fill reads more bytes, at most one small chunk at a time.
func (p *packetReader) fill() error {
	var chunk [2 << 10]byte
	n, err := p.conn.Read(chunk[:])
	p.buf = append(p.buf, chunk[:n]...)
	switch {
	case n > 0:
		return nil
	case errors.Is(err, os.ErrDeadlineExceeded):
		return errStartupTimeout
	case errors.Is(err, io.EOF) && len(p.buf) > 0:
		return errors.New("incomplete startup message")
	}
	return errQuiet
}

// packetLength returns the length of the packet at the start of b, 0 while unknown.
func packetLength(b []byte) (int, error) {
	if len(b) > 0 && b[0] == tlsRecord {
		return 0, errDirectTLS
	}
	if len(b) < 4 {
		return 0, nil
	}
	length := binary.BigEndian.Uint32(b)
	if length < minStartup || length > maxStartup {
		return 0, fmt.Errorf("startup message announces %d bytes", length)
	}
	return int(length), nil
}

// handle serves a client's connection from accept to close.
func (s *Server) handle(client net.Conn) {
	defer client.Close()
	_ = client.SetReadDeadline(time.Now().Add(s.opts.StartupTimeout))
	if s.closing.Load() { // otherwise the deadline just set would replace the one set by drain
		_ = client.SetReadDeadline(time.Now())
	}
	start, err := s.readStartup(client)
	switch {
	case errors.Is(err, errQuiet):
		return
	case errors.Is(err, errDirectTLS):
		s.counters.refusedDirect.Add(1)
		_, _ = client.Write(tlsAlert[:])
		s.linger(client)
		return
	case err != nil && !(s.draining.Load() && errors.Is(err, errStartupTimeout)):
		s.rejectStartup(start, err)
		return
	}
	if err == nil && start.version == cancelCode {
		s.cancel(start.conn, start.packet)
		return
	}
	if s.draining.Load() {
		s.counters.refusedDraining.Add(1)
		s.refuse(start.conn, shuttingDown)
		return
	}
	if start.leaf == nil && s.opts.ClientTLS.Mode == TLSRequire { // a cancel request is accepted without TLS, as by PostgreSQL
		s.counters.refusedTLS.Add(1)
		s.refuse(start.conn, tlsRequired)
		return
	}
	_ = client.SetReadDeadline(time.Time{})
	s.serve(client, start)
}

// rejectStartup ends a connection whose startup is invalid: with the answer in err, or without one.
func (s *Server) rejectStartup(start *startup, err error) {
	s.counters.refusedProtocol.Add(1)
	var refused *refusedError
	if errors.As(err, &refused) {
		s.refuse(start.conn, refused.refusal)
		return
	}
	s.log.Info("connection closed: invalid startup packet", zap.Stringer("client", start.peer), zap.Error(err))
}
