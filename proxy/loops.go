package proxy

import (
	"net"
	"runtime"
	"syscall"
)

// carrier relays one session that is no longer in the hands of its goroutine.
type carrier interface {
	// kill ends the session by force. It does not wait, and may be called at any time.
	kill()
}

// DefaultLoops is the number of event loops where the options name none: a quarter of the processors, 1 at least and
// 4 at most. One carries what the other processors of such a machine can answer.
func DefaultLoops() int { return max(1, min(4, runtime.NumCPU()/4)) }

// plainSocket returns the connection's socket when nothing is between it and the bytes, false for TLS and for
// whatever else wraps a connection.
func plainSocket(c net.Conn) (syscall.RawConn, bool) {
	var raw syscall.RawConn
	var err error
	switch c := c.(type) {
	case *net.TCPConn:
		raw, err = c.SyscallConn()
	case *net.UnixConn:
		raw, err = c.SyscallConn()
	default:
		return nil, false
	}
	return raw, err == nil
}
