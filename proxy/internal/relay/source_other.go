//go:build !unix

package relay

import "net"

func newSource(conn net.Conn, chunks *chunkPool) source {
	return &plainSource{conn: conn, chunks: chunks}
}
