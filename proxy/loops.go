package proxy

import (
	"net"
	"runtime"
	"syscall"
)

// epoll relays a session in place of its goroutines.
type epoll interface {
	// kill ends the session by force. It does not wait, and is safe to call at any time.
	kill()
}

// DefaultLoops returns the default number of event loops: a quarter of the processors, at least 1 and at most 4. One loop
// relays as much as the other processors of such a machine can answer.
func DefaultLoops() int { return max(1, min(4, runtime.NumCPU()/4)) }

// plainSocket returns the socket of a plain TCP or Unix connection, false for TLS and any other wrapper.
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
