package startup

import (
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"

	"go.uber.org/zap"
)

// Request codes in the version field (manual, chapter 55.7).
const (
	cancelCode = 1234<<16 | 5678
	sslCode    = 1234<<16 | 5679
	gssCode    = 1234<<16 | 5680
)

// Lengths of the packets before authentication, in bytes, including the length word. After its length word a startup
// packet can have 10,000 bytes (MAX_STARTUP_PACKET_LENGTH in pqcomm.h); a cancel key has 4 to 256.
const (
	maxStartup  = 4 + 10_000
	minStartup  = 8
	minCancel   = 16
	maxCancel   = 268
	requestSize = 8 // SSLRequest and GSSENCRequest; the engine ignores the content of a longer one
)

// tlsRecord is the first byte of a TLS handshake; no startup packet within the limit begins with it.
const tlsRecord = 0x16

// TLSAlert is a fatal handshake_failure alert (RFC 8446, section 6), which TLS clients report properly.
var TLSAlert = [...]byte{0x15, 3, 1, 0, 2, 2, 40}

// Client holds what a client sent up to its StartupMessage or CancelRequest.
type Client struct {
	Packet  []byte // the StartupMessage or CancelRequest, with its length
	Rest    []byte // the bytes after it
	Version uint32
	Conn    net.Conn          // the client leg from here on: as accepted, or TLS over it
	Leaf    *x509.Certificate // the certificate shown to the client; nil without TLS
	Peer    net.Addr          // the client's address, from the PROXY protocol header if one came
}

// Cancels reports whether the client sent a CancelRequest.
func (c *Client) Cancels() bool { return c.Version == cancelCode }

// Errors of Read that end a connection in their own way.
var (
	// ErrQuiet ends a connection without an answer and without a log entry: the client has gone, or its session is
	// over.
	ErrQuiet = errors.New("closed before a startup message")
	// ErrTimeout means that the client was too slow, or that the server is shutting down.
	ErrTimeout = errors.New("no complete startup message in time")
	// ErrDirectTLS means that the client began with a TLS handshake, where TLS is disabled. TLSAlert is the answer.
	ErrDirectTLS = errors.New("client began with TLS")
)

// Read reads the messages before authentication: SSLRequest and GSSENCRequest, each at most once, or direct TLS, then a
// StartupMessage or CancelRequest. It follows ProcessStartupPacket of PostgreSQL. A *RefusedError holds the answer for
// the client. Any other error ends the connection without an answer, as in PostgreSQL: a client that disconnects before
// its startup (node-postgres sends Terminate then) must not read an error. The result is never nil.
func (l *Legs) Read(client net.Conn) (*Client, error) {
	start := &Client{Conn: client, Peer: client.RemoteAddr()}
	p := packetReader{conn: client}
	if l.trusts(client.RemoteAddr()) {
		if err := p.proxyHeader(start); err != nil {
			return start, err
		}
	}
	ssl, gss, first := false, false, true
	for {
		packet, err := p.next()
		if errors.Is(err, ErrDirectTLS) && first {
			ssl, gss, first = true, true, false
			l.Counts.DirectTLS.Add(1)
			if err := l.directTLS(&p, start); err != nil {
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
			l.Counts.SSLRequests.Add(1)
		case code == gssCode && !gss:
			gss = true
			l.Counts.GSSENCRequests.Add(1)
		case code == sslCode || code == gssCode:
			return start, &RefusedError{unsupportedProtocol(code)}
		default:
			start.Packet, start.Rest, start.Version = packet, p.buf, code
			return start, nil
		}
		mode := l.opts.ClientTLS.Mode
		if len(p.buf) > 0 { // not sent inside TLS, so possibly injected (CVE-2021-23214)
			if code == gssCode || mode == TLSDisable { // the error follows in plain text, as from the engine
				_, _ = client.Write([]byte{'N'})
			}
			return start, &RefusedError{unencryptedData(code)}
		}
		switch {
		case code == sslCode && mode == TLSPassthrough:
			if l.opts.Pass(client, packet, false) {
				return start, ErrQuiet
			}
		case code == sslCode && mode != TLSDisable:
			gss = true // not inside TLS
			if _, err := client.Write([]byte{'S'}); err != nil {
				return start, ErrQuiet
			}
			if err := l.beginTLS(&p, start, false); err != nil {
				return start, err
			}
		default:
			if _, err := client.Write([]byte{'N'}); err != nil {
				return start, ErrQuiet
			}
		}
	}
}

// directTLS handles a client that began with TLS; p holds the first bytes.
func (l *Legs) directTLS(p *packetReader, start *Client) error {
	switch l.opts.ClientTLS.Mode {
	case TLSDisable:
		return ErrDirectTLS
	case TLSPassthrough:
		l.opts.Pass(start.Conn, p.buf, true)
		return ErrQuiet
	default:
		return l.beginTLS(p, start, true)
	}
}

// beginTLS continues the startup inside TLS.
func (l *Legs) beginTLS(p *packetReader, start *Client, direct bool) error {
	leg, leaf, err := l.clientTLS.handshake(start.Conn, p.buf, direct, l.upstreamTLS != nil && l.upstreamTLS.asked.Load())
	if err != nil {
		l.Counts.TLSFailures.Add(1)
		l.log.Info("connection closed", zap.Stringer("client", start.Peer), zap.Error(err))
		return ErrQuiet
	}
	start.Conn, start.Leaf = leg, leaf
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
		if p.secured && errors.Is(err, ErrDirectTLS) {
			err = errors.New("TLS handshake within TLS")
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
		return ErrTimeout
	case errors.Is(err, io.EOF) && len(p.buf) > 0:
		return errors.New("incomplete startup message")
	}
	return ErrQuiet
}

// packetLength returns the length of the packet at the start of b, 0 while unknown.
func packetLength(b []byte) (int, error) {
	if len(b) > 0 && b[0] == tlsRecord {
		return 0, ErrDirectTLS
	}
	if len(b) < 4 {
		return 0, nil
	}
	length := binary.BigEndian.Uint32(b)
	if length < minStartup || length > maxStartup {
		return 0, fmt.Errorf("startup message announces an invalid length of %d bytes", length)
	}
	return int(length), nil
}
