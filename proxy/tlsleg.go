package proxy

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
)

// alpn is the protocol's name in TLS (manual, chapter 55.2.10); direct TLS needs it.
const alpn = "postgresql"

// tlsLeg is a TLS connection that ends like a plain one, as the relay needs it.
type tlsLeg struct {
	*tls.Conn
	raw net.Conn
}

// Read reads; a connection that was cut without the TLS farewell has ended, as a TCP connection has.
func (l *tlsLeg) Read(b []byte) (int, error) {
	n, err := l.Conn.Read(b)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = io.EOF
	}
	return n, err
}

// CloseWrite says farewell and closes this half of the connection.
func (l *tlsLeg) CloseWrite() error {
	err := l.Conn.CloseWrite()
	if half, ok := l.raw.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
	return err
}

// Close cuts the connection at once. tls.Conn.Close could wait for a peer that does not read.
func (l *tlsLeg) Close() error { return l.raw.Close() }

// prefixConn is a connection of which some bytes were read already.
type prefixConn struct {
	net.Conn
	prefix []byte
}

func (c *prefixConn) Read(b []byte) (int, error) {
	if len(c.prefix) > 0 {
		n := copy(b, c.prefix)
		c.prefix = c.prefix[n:]
		return n, nil
	}
	return c.Conn.Read(b)
}
