package relay

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
)

// newSource returns the source for a connection. For a plain socket, it holds no buffer while it waits.
func newSource(conn net.Conn, chunks *chunkPool) source {
	plain := plainSource{conn: conn, chunks: chunks}
	if direct, ok := conn.(syscall.Conn); ok {
		if raw, err := direct.SyscallConn(); err == nil {
			s := &readySource{plainSource: plain, raw: raw}
			s.try = s.read
			return s
		}
	}
	return &sparingSource{plainSource: plain}
}

// readySource takes a buffer only when the connection is readable. Most sessions wait most of the time, and a buffer is
// two thirds of the memory of one of their directions.
type readySource struct {
	plainSource
	raw syscall.RawConn
	try func(fd uintptr) bool // the read method, bound once
	n   int
	err error
}

func (s *readySource) next() ([]byte, error) {
	if err := s.raw.Read(s.try); err != nil {
		return nil, err
	}
	switch {
	case s.err != nil:
		return nil, os.NewSyscallError("read", s.err)
	case s.n == 0:
		return nil, io.EOF
	}
	return s.chunk[:s.n], nil
}

// read tries to read; false if nothing is available.
func (s *readySource) read(fd uintptr) bool {
	s.chunk = s.chunks.take()
	for {
		s.n, s.err = syscall.Read(int(fd), s.chunk[:])
		if !errors.Is(s.err, syscall.EINTR) {
			break
		}
	}
	if !errors.Is(s.err, syscall.EAGAIN) {
		return true
	}
	s.release()
	return false
}

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
