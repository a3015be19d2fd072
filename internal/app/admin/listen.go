package admin

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"

	"github.com/dpwatch/dpwatch/config"
)

// ListenError returns the error of a configured listen address, with advice if the address is in use.
func ListenError(key string, a config.Address, err error) error {
	err = fmt.Errorf("%s %s: %w", key, a, err)
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%w: choose another address, or stop the program that uses it", err)
	}
	return err
}

// Addresses returns the addresses of listeners, with the actual port in place of port 0.
func Addresses(listeners []net.Listener) []string {
	var out []string
	for _, l := range listeners {
		out = append(out, l.Addr().String())
	}
	return out
}

// Listen opens a listener; mode applies to a Unix socket. The socket that a killed process has left is replaced.
func Listen(a config.Address, mode os.FileMode) (net.Listener, error) {
	if a.Network != "unix" {
		return net.Listen(family(a), a.Address)
	}
	if err := removeStale(a.Address); err != nil {
		return nil, err
	}
	l, err := net.Listen("unix", a.Address)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(a.Address, mode); err != nil {
		_ = l.Close()
		return nil, err
	}
	return l, nil
}

// family returns the network of an address: tcp4 for IPv4, because with tcp, 0.0.0.0 would also listen on IPv6.
func family(a config.Address) string {
	host, _, err := net.SplitHostPort(a.Address)
	if ip, parseErr := netip.ParseAddr(host); err == nil && parseErr == nil && ip.Is4() {
		return "tcp4"
	}
	return a.Network
}

// removeStale removes a Unix socket on which no process listens. It leaves other files.
func removeStale(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil || info.Mode().Type() != fs.ModeSocket {
		return err
	}
	conn, err := net.DialTimeout("unix", path, time.Second)
	if err == nil {
		_ = conn.Close()
		return nil // net.Listen reports the error
	}
	if errors.Is(err, syscall.ECONNREFUSED) {
		return os.Remove(path)
	}
	return nil
}
