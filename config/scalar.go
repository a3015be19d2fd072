package config

import (
	"fmt"
	"io"
	"math"
	"net"
	"strconv"
	"strings"
	"time"
)

// Secret is a string that prints as "***": connection strings and passwords.
type Secret string

// String returns "***", or "" for the empty secret.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return "***"
}

// GoString returns String's form: %#v must not print the secret either.
func (s Secret) GoString() string { return s.String() }

// Format writes the redacted form, for every verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// MarshalYAML returns the redacted form.
func (s Secret) MarshalYAML() ([]byte, error) { return []byte(strconv.Quote(s.String())), nil }

// MarshalText returns the redacted form, for JSON and JSON loggers.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Reveal returns the secret, for the one place that needs it.
func (s Secret) Reveal() string { return string(s) }

// Duration is a time.Duration in Go's notation: 250ms, 10s, 2m.
type Duration time.Duration

// String returns Go's notation.
func (d Duration) String() string { return time.Duration(d).String() }

// MarshalYAML returns Go's notation.
func (d Duration) MarshalYAML() ([]byte, error) { return []byte(d.String()), nil }

func (d *Duration) set(text string) error {
	v, err := time.ParseDuration(text)
	if err != nil {
		return fmt.Errorf("%q is not a duration: write 250ms, 10s or 2m", text)
	}
	*d = Duration(v)
	return nil
}

// ByteSize is a number of bytes, written as a plain number or with KiB, MiB or GiB.
type ByteSize int64

// String returns the shortest exact form.
func (b ByteSize) String() string {
	for _, u := range byteUnits {
		if b != 0 && int64(b)%u.bytes == 0 {
			return strconv.FormatInt(int64(b)/u.bytes, 10) + u.name
		}
	}
	return strconv.FormatInt(int64(b), 10)
}

// MarshalYAML returns String's form.
func (b ByteSize) MarshalYAML() ([]byte, error) { return []byte(b.String()), nil }

var byteUnits = [...]struct {
	name  string
	bytes int64
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}}

func (b *ByteSize) set(text string) error {
	number, unit := text, int64(1)
	for _, u := range byteUnits {
		if n, ok := strings.CutSuffix(text, u.name); ok {
			number, unit = strings.TrimSpace(n), u.bytes
			break
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < 0 || n > math.MaxInt64/unit {
		return fmt.Errorf("%q is not a size: write a number of bytes, or 64KiB, 1MiB, 1GiB", text)
	}
	*b = ByteSize(n * unit)
	return nil
}

// Address is an address to listen on or connect to: host:port, or unix:/path. The zero Address means none.
type Address struct {
	Network string // "tcp" or "unix"
	Address string
}

func (a Address) IsZero() bool { return a.Address == "" }

// String returns the form used in the file.
func (a Address) String() string {
	if a.Network == "unix" {
		return "unix:" + a.Address
	}
	return a.Address
}

// MarshalYAML returns String's form, quoted.
func (a Address) MarshalYAML() ([]byte, error) { return []byte(strconv.Quote(a.String())), nil }

// ParseAddress parses the form used in the file.
func ParseAddress(text string) (Address, error) {
	var a Address
	err := a.set(text)
	return a, err
}

func (a *Address) set(text string) error {
	if text == "" {
		*a = Address{}
		return nil
	}
	if path, ok := strings.CutPrefix(text, "unix:"); ok {
		if !strings.HasPrefix(path, "/") {
			return fmt.Errorf("%q: a unix socket needs an absolute path: unix:/run/dpwatch/.s.PGSQL.6432", text)
		}
		*a = Address{Network: "unix", Address: path}
		return nil
	}
	_, port, err := net.SplitHostPort(text)
	if err != nil {
		return fmt.Errorf("%q is not an address: write host:port, [ipv6]:port or unix:/path", text)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || strconv.FormatUint(n, 10) != port {
		return fmt.Errorf("%q: the port must be a number from 0 to 65535", text)
	}
	*a = Address{Network: "tcp", Address: text}
	return nil
}

// Loopback reports whether only this machine can reach the address.
func (a Address) Loopback() bool {
	if a.Network == "unix" {
		return true
	}
	host, _, err := net.SplitHostPort(a.Address)
	if err != nil {
		return false
	}
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
