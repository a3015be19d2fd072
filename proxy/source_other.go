//go:build !unix

package proxy

import "net"

func newSource(conn net.Conn, chunks *chunkPool) source {
	return &plainSource{conn: conn, chunks: chunks}
}
