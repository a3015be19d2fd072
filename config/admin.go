package config

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// AdminListener configures where metrics, health and status are served: addresses with the same protection.
type AdminListener struct {
	Listen      []Address `yaml:"listen"`
	Hosts       []Host    `yaml:"hosts"`        // further accepted values of Host
	TokenFile   string    `yaml:"token_file"`   // tokens, one per line; "" = none required
	TLS         AdminTLS  `yaml:"tls"`          // zero = plain HTTP
	MetricsOnly bool      `yaml:"metrics_only"` // serve only /livez, /readyz and /metrics

	ProxyLogin ProxyLogin `yaml:"proxy_login"` // zero = no user is accepted without a token
}

// ProxyLogin configures a reverse proxy that authenticates users and sends their names.
type ProxyLogin struct {
	Addresses []Network   `yaml:"addresses"`
	Header    string      `yaml:"header"`
	Users     []ProxyUser `yaml:"users"`
}

// ProxyUser is a user with roles, written as in a token file: "auditor,operator ann". The name "*" is every user.
type ProxyUser struct {
	Roles []string
	Name  string
}

// MarshalYAML returns the form used in the file.
func (u ProxyUser) MarshalYAML() ([]byte, error) { return []byte(strconv.Quote(u.String())), nil }

// String returns the form used in the file.
func (u ProxyUser) String() string { return strings.Join(u.Roles, ",") + " " + u.Name }

func (u *ProxyUser) set(text string) error {
	roles, name, _ := strings.Cut(strings.TrimSpace(text), " ")
	*u = ProxyUser{Roles: strings.Split(roles, ","), Name: strings.TrimSpace(name)}
	for _, role := range u.Roles {
		if !slices.Contains([]string{"viewer", "auditor", "operator"}, role) || u.Name == "" {
			return fmt.Errorf("%q is not a user with roles: write \"viewer *\" (all users), \"auditor ann\" or \"auditor,operator ann\"", text)
		}
	}
	return nil
}

// IsZero reports whether there is no such proxy.
func (p *ProxyLogin) IsZero() bool {
	return p.Header == "" && len(p.Addresses)+len(p.Users) == 0
}

// AdminTLS names the PEM files of a certificate and its key.
type AdminTLS struct {
	Certificate string `yaml:"certificate"`
	Key         string `yaml:"key"`
}

// Exposed returns an address of the listener that other machines can reach; the zero Address if there is none.
func (l *AdminListener) Exposed() Address {
	for _, a := range l.Listen {
		if !a.Loopback() {
			return a
		}
	}
	return Address{}
}

// Host is a host name or an IP address without a port, in lower case.
type Host string

// MarshalYAML returns the form used in the file.
func (h Host) MarshalYAML() ([]byte, error) { return []byte(strconv.Quote(string(h))), nil }

func (h *Host) set(text string) error {
	name := strings.TrimSuffix(strings.ToLower(text), ".")
	if ip, err := netip.ParseAddr(strings.Trim(name, "[]")); err == nil {
		*h = Host(ip.String())
		return nil
	}
	if name == "" || strings.ContainsAny(name, ":/*@[] \t") {
		return fmt.Errorf("%q is not a host: write a name or an IP address, without a port: dpwatch.monitoring.svc", text)
	}
	*h = Host(name)
	return nil
}
