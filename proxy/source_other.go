//go:build !unix

package proxy

import "net"

// newSource returns the source for a connection.
func newSource(conn net.Conn, chunks *chunkPool) source {
	return &plainSource{conn: conn, chunks: chunks}
}
