package proxy

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"
)

// Request codes in the place of a version (manual, chapter 55.7).
const (
	cancelCode = 1234<<16 | 5678
	sslCode    = 1234<<16 | 5679
	gssCode    = 1234<<16 | 5680
)

// Lengths of the packets before authentication, in bytes. A startup packet may have 10,000
// (MAX_STARTUP_PACKET_LENGTH in pqcomm.h), a cancel key 4 to 256.
const (
	maxStartup  = 10_000
	minStartup  = 8
	minCancel   = 16
	maxCancel   = 268
	requestSize = 8 // SSLRequest and GSSENCRequest
)

// tlsRecord is the first byte of a TLS handshake; no startup packet within the limit begins with it.
const tlsRecord = 0x16

// tlsAlert is a fatal handshake_failure alert (RFC 8446, section 6), which TLS clients report properly.
var tlsAlert = [...]byte{0x15, 3, 1, 0, 2, 2, 40}

// startup is what a client sent until its session, or its cancel request, was clear.
type startup struct {
	packet  []byte // the StartupMessage or CancelRequest, with its length
	rest    []byte // what came behind it
	version uint32
}

// errQuiet ends a connection without an answer and without a complaint: there is nobody to talk to.
var errQuiet = errors.New("closed before a startup message")

// errDirectTLS says that the client began with a TLS handshake.
var errDirectTLS = errors.New("client began with TLS")

// readStartup reads what comes before authentication: SSLRequest and GSSENCRequest, each at most once and
// answered with N, then a StartupMessage or CancelRequest. Errors that are neither errQuiet nor errDirectTLS
// say what the client did wrong.
func (s *Server) readStartup(client net.Conn) (*startup, error) {
	p := packetReader{conn: client}
	ssl, gss := false, false
	for {
		packet, err := p.next()
		if err != nil {
			return nil, err
		}
		code := binary.BigEndian.Uint32(packet[4:])
		switch {
		case code == sslCode && !ssl && len(packet) == requestSize:
			ssl = true
			s.counters.sslRequests.Add(1)
		case code == gssCode && !gss && len(packet) == requestSize:
			gss = true
			s.counters.gssRequests.Add(1)
		case code == sslCode || code == gssCode:
			return nil, errors.New("repeated or malformed encryption request")
		default:
			return &startup{packet: packet, rest: p.buf, version: code}, nil
		}
		if len(p.buf) > 0 {
			return nil, errors.New("data behind an encryption request, before its answer")
		}
		if _, err := client.Write([]byte{'N'}); err != nil {
			return nil, errQuiet
		}
	}
}

// packetReader reads untyped packets: a length that counts itself, then the rest.
type packetReader struct {
	conn net.Conn
	buf  []byte // read, but not yet returned
}

// next returns the next packet, which owns its memory.
func (p *packetReader) next() ([]byte, error) {
	for {
		n, err := packetLength(p.buf)
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

// fill reads more. It never asks for more than a startup packet may have.
func (p *packetReader) fill() error {
	var chunk [2 << 10]byte
	n, err := p.conn.Read(chunk[:])
	p.buf = append(p.buf, chunk[:n]...)
	switch {
	case n > 0:
		return nil
	case errors.Is(err, os.ErrDeadlineExceeded):
		return errors.New("no complete startup message in time")
	case errors.Is(err, io.EOF) && len(p.buf) > 0:
		return errors.New("incomplete startup message")
	}
	return errQuiet
}

// packetLength returns the length of the packet that b begins with, 0 while it cannot be known.
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

// handle is the whole life of a client's connection.
func (s *Server) handle(client net.Conn) {
	defer client.Close()
	_ = client.SetReadDeadline(time.Now().Add(s.opts.StartupTimeout))
	if s.draining.Load() { // or the deadline just set would outlast the one set by drain
		_ = client.SetReadDeadline(time.Now())
	}
	start, err := s.readStartup(client)
	switch {
	case errors.Is(err, errQuiet):
		return
	case errors.Is(err, errDirectTLS):
		s.counters.directTLS.Add(1)
		_, _ = client.Write(tlsAlert[:])
		s.linger(client)
		return
	case err != nil && !s.draining.Load():
		s.counters.refusedProtocol.Add(1)
		s.refuse(client, protocolViolation(err))
		return
	}
	if err == nil && start.version == cancelCode {
		s.cancel(client, start.packet)
		return
	}
	if s.draining.Load() {
		s.counters.refusedDraining.Add(1)
		s.refuse(client, shuttingDown)
		return
	}
	_ = client.SetReadDeadline(time.Time{})
	s.serve(client, start)
}
