package config

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
)

// Route is an address of an engine and the addresses for its clients.
type Route struct {
	Name          string      `yaml:"name"` // in logs and status; default the first address of listen
	Listen        []Address   `yaml:"listen"`
	Upstream      Address     `yaml:"upstream"`
	TLS           TLS         `yaml:"tls"`
	UpstreamTLS   UpstreamTLS `yaml:"upstream_tls"`
	ProxyProtocol []Network   `yaml:"proxy_protocol"`
}

// TLS configures TLS with clients. The files are PEM.
type TLS struct {
	Mode            string `yaml:"mode"` // disable | allow | require | passthrough
	Certificate     string `yaml:"certificate"`
	Key             string `yaml:"key"`
	ClientCA        string `yaml:"client_ca"`
	SameCertificate string `yaml:"same_certificate"` // check | assume
}

// UpstreamTLS configures TLS between the proxy and the engine. The files are PEM.
type UpstreamTLS struct {
	Mode        string `yaml:"mode"` // disable | prefer | require | verify-ca | verify-full
	CA          string `yaml:"ca"`
	Certificate string `yaml:"certificate"`
	Key         string `yaml:"key"`
	ServerName  string `yaml:"server_name"` // default the host of upstream
}

// AllRoutes returns the routes of an engine: those of its list, or else the single one of listen and upstream.
func (p *Proxy) AllRoutes() []Route {
	if len(p.Routes) > 0 {
		return p.Routes
	}
	r := Route{Listen: p.Listen, Upstream: p.Upstream, TLS: p.TLS, UpstreamTLS: p.UpstreamTLS, ProxyProtocol: p.ProxyProtocol}
	r.setDefaults()
	return []Route{r}
}

// UsesTLS reports whether the proxy terminates TLS on a leg of any route of any engine.
func (c Config) UsesTLS() bool {
	return slices.ContainsFunc(c.AllEngines(), func(one Config) bool {
		return slices.ContainsFunc(one.Proxy.AllRoutes(), func(r Route) bool {
			ends := r.TLS.Mode != "disable" && r.TLS.Mode != "passthrough"
			return ends || r.UpstreamTLS.Mode != "disable"
		})
	})
}

func (r *Route) setDefaults() {
	if r.Name == "" && len(r.Listen) > 0 {
		r.Name = r.Listen[0].String()
	}
}

// Network is an address range such as 10.0.0.0/8, or a single address.
type Network string

// Prefix returns the range.
func (n Network) Prefix() netip.Prefix {
	p, err := netip.ParsePrefix(string(n))
	if err != nil {
		return netip.Prefix{} // set has validated it
	}
	return p
}

// MarshalYAML returns the form used in the file.
func (n Network) MarshalYAML() ([]byte, error) { return []byte(strconv.Quote(string(n))), nil }

func (n *Network) set(text string) error {
	if a, err := netip.ParseAddr(text); err == nil && a.Zone() == "" {
		*n = Network(netip.PrefixFrom(a, a.BitLen()).String())
		return nil
	}
	p, err := netip.ParsePrefix(text)
	if err != nil {
		return fmt.Errorf("%q is not a network: write 10.0.0.0/8, fd00::/8 or a single address", text)
	}
	*n = Network(p.Masked().String())
	return nil
}
