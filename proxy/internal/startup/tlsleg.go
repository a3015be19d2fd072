package startup

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
)

// alpn is the protocol name in ALPN (manual, chapter 55.2.10); direct TLS requires it.
const alpn = "postgresql"

// tlsLeg is a TLS connection that ends like a plain one, as the relay requires.
type tlsLeg struct {
	*tls.Conn
	raw net.Conn
}

// Read reads. A connection that is cut without close_notify has ended, like a TCP connection.
func (l *tlsLeg) Read(b []byte) (int, error) {
	n, err := l.Conn.Read(b)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = io.EOF
	}
	return n, err
}

// CloseWrite sends close_notify and closes this half of the connection.
func (l *tlsLeg) CloseWrite() error {
	err := l.Conn.CloseWrite()
	if half, ok := l.raw.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
	return err
}

// Close closes the connection at once. tls.Conn.Close can wait for a peer that does not read.
func (l *tlsLeg) Close() error { return l.raw.Close() }

// prefixConn is a connection whose first bytes were read already.
type prefixConn struct {
	net.Conn
	prefix []byte
}

// NetConn returns the connection under this one.
func (c *prefixConn) NetConn() net.Conn { return c.Conn }

func (c *prefixConn) Read(b []byte) (int, error) {
	if len(c.prefix) > 0 {
		n := copy(b, c.prefix)
		c.prefix = c.prefix[n:]
		return n, nil
	}
	return c.Conn.Read(b)
}
