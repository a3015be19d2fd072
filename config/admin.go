package config

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// Admin configures where metrics, health and status are served: one listener, or several (AllListeners).
type Admin struct {
	Listen      []Address `yaml:"listen"`
	Hosts       []Host    `yaml:"hosts"`
	TokenFile   string    `yaml:"token_file"`
	TLS         AdminTLS  `yaml:"tls"`
	OpenMetrics bool      `yaml:"open_metrics"`
	MetricsOnly bool      `yaml:"metrics_only"`

	ProxyLogin ProxyLogin `yaml:"proxy_login"`

	Listeners []AdminListener `yaml:"listeners"`
}

// AdminListener is a set of addresses with the same protection.
type AdminListener struct {
	Listen      []Address `yaml:"listen"`
	Hosts       []Host    `yaml:"hosts"`        // further accepted values of Host
	TokenFile   string    `yaml:"token_file"`   // tokens, one per line; "" = none required
	TLS         AdminTLS  `yaml:"tls"`          // zero = plain HTTP
	OpenMetrics bool      `yaml:"open_metrics"` // /metrics needs no token
	MetricsOnly bool      `yaml:"metrics_only"` // serve only /livez, /readyz and /metrics

	ProxyLogin ProxyLogin `yaml:"proxy_login"` // zero = no user is accepted without a token
}

// ProxyLogin configures a reverse proxy that authenticates users and sends their names.
type ProxyLogin struct {
	Addresses []Network `yaml:"addresses"`
	Header    string    `yaml:"header"`
	Viewers   []string  `yaml:"viewers"` // users; "*" = all
	Auditors  []string  `yaml:"auditors"`
	Operators []string  `yaml:"operators"`
}

// IsZero reports whether there is no such proxy.
func (p *ProxyLogin) IsZero() bool {
	return p.Header == "" && len(p.Addresses)+len(p.Viewers)+len(p.Auditors)+len(p.Operators) == 0
}

// AdminTLS names the PEM files of a certificate and its key.
type AdminTLS struct {
	Certificate string `yaml:"certificate"`
	Key         string `yaml:"key"`
}

// AllListeners returns the listeners: those of the list or else the single one of listen; none without both.
func (a *Admin) AllListeners() []AdminListener {
	if len(a.Listeners) > 0 || len(a.Listen) == 0 {
		return a.Listeners
	}
	return []AdminListener{{
		Listen: a.Listen, Hosts: a.Hosts, TokenFile: a.TokenFile, TLS: a.TLS, OpenMetrics: a.OpenMetrics, MetricsOnly: a.MetricsOnly, ProxyLogin: a.ProxyLogin,
	}}
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
