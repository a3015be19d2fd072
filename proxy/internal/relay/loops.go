package relay

import (
	"net"
	"syscall"
)

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
