package relay

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// hasClosed reports whether the other end of a socket has closed, at least for writing. Bytes that it sent before may
// not be read yet. An end whose last bytes do not fit into this host's buffers is noticed only when its host gives up,
// by keep-alive probes.
func hasClosed(raw syscall.RawConn) (closed bool) {
	if raw == nil {
		return false
	}
	err := raw.Control(func(fd uintptr) {
		poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}} //nolint:gosec // a file descriptor
		n, err := unix.Poll(poll, 0)
		closed = err == nil && n > 0
	})
	return closed || err != nil
}

// progressOf returns how far the other end of a socket has accepted what was written.
func progressOf(raw syscall.RawConn) (m mark) {
	if raw != nil {
		_ = raw.Control(func(fd uintptr) { m = progress(int(fd)) }) //nolint:gosec // a file descriptor
	}
	return m
}

func progress(fd int) (m mark) {
	m.queued, _ = unix.IoctlGetInt(fd, unix.SIOCOUTQ)
	if info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
		m.acked = info.Bytes_acked
	}
	return m
}
