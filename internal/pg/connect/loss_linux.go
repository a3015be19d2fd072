package connect

import (
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// limitUnacknowledged bounds how long data that was sent may stay unacknowledged. Keep-alive probes alone do not: the
// kernel sends none then.
func limitUnacknowledged(network, _ string, c syscall.RawConn) error {
	if !strings.HasPrefix(network, "tcp") {
		return nil
	}
	return c.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(lossAfter.Milliseconds())) //nolint:gosec // a file descriptor; the connection works without the option
	})
}
