// Package wire holds what the parts of the proxy have in common about PostgreSQL's protocol: the header of a message
// and the end of a stream.
package wire

import (
	"encoding/binary"
	"net"
)

// HeaderLen is the size of a message's type and length.
const HeaderLen = 5

// maxMessage is the greatest length that a message can announce (MaxAllocSize in memutils.h, plus the length word).
const maxMessage = 1<<30 + 4

// Length returns the length that a complete header announces, which includes the length word and not the type; false if
// no message can have it.
func Length(header []byte) (n uint32, ok bool) {
	n = binary.BigEndian.Uint32(header[1:HeaderLen])
	return n, n-4 <= maxMessage-4 // one comparison: below 4 it wraps around
}

// CloseWrite passes the end of a stream on. It closes the whole connection if it cannot be half-closed.
func CloseWrite(c net.Conn) {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
		return
	}
	_ = c.Close()
}
