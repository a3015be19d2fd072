//go:build !linux

package connect

import "syscall"

// limitUnacknowledged does nothing: the system's own limit holds.
func limitUnacknowledged(string, string, syscall.RawConn) error { return nil }
