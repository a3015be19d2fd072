package config

import (
	"fmt"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// admin validates the listeners, and that sensitive data is not served to other machines unprotected.
func (s *processSections) admin(c *Config) {
	for i := range c.Admin {
		s.adminListener(s.adminPath(i), &c.Admin[i])
	}
	s.adminAddresses(c)
}

// adminPath returns the path of a listener: admin, or admin[0] if the file has a list.
func (s *processSections) adminPath(i int) string {
	if path := fmt.Sprintf("admin[%d]", i); s.lines[path] > 0 {
		return path
	}
	return "admin"
}

func (s *processSections) adminListener(path string, l *AdminListener) {
	if len(l.Listen) == 0 {
		s.add(path+".listen", "missing: the address to listen on, for example 127.0.0.1:9188")
	}
	withTLS := l.TLS != AdminTLS{}
	exposed := l.Exposed()
	switch {
	case exposed.IsZero():
	case !l.MetricsOnly && (l.TokenFile == "" && l.ProxyLogin.IsZero() || !withTLS):
		s.add(path+".listen", "other machines can reach %s, and the status shows results of replays: set token_file and tls; or "+
			"metrics_only: true, which serves only /livez, /readyz and /metrics; or listen on 127.0.0.1 or unix:/path", exposed)
	case l.TokenFile != "" && !withTLS:
		s.add(path+".token_file", "needs tls: other machines can reach %s, and the token would cross the network in plain text", exposed)
	}
	s.proxyLogin(path+".proxy_login", l)
	s.adminTLS(path+".tls", l)
	if s.files && l.TokenFile != "" {
		s.read(path+".token_file", l.TokenFile)
	}
}

func (s *processSections) proxyLogin(path string, l *AdminListener) {
	p := &l.ProxyLogin
	if p.IsZero() {
		return
	}
	if l.MetricsOnly {
		s.add(path, "has no effect with metrics_only: remove one of them")
	}
	if len(p.Addresses) == 0 {
		s.add(path+".addresses", "missing: the addresses of the proxy, for example [10.0.0.5]; whoever connects from them is believed to be the user that the header names")
	}
	if !httpguts.ValidHeaderFieldName(p.Header) {
		s.add(path+".header", "missing or not the name of a header: that in which the proxy sends the user's name, for example X-Forwarded-User; it must remove the header from clients' requests")
	}
	if len(p.Users) == 0 {
		s.add(path+".users", "missing: the users and their roles: viewer, auditor (sees values of rows), operator (changes things), for example [\"viewer *\", \"auditor,operator ann\"]")
	}
}

func (s *processSections) adminTLS(path string, l *AdminListener) {
	if (l.TLS.Certificate == "") != (l.TLS.Key == "") {
		s.add(path, "give both certificate and key, or neither")
	}
	for _, a := range l.Listen {
		if a.Network == "unix" && l.TLS != (AdminTLS{}) {
			s.add(path, "applies to TCP only: move the Unix socket %s to another listener, without tls", a.Address)
		}
	}
	s.pair(path, l.TLS.Certificate, l.TLS.Key)
}

// adminAddresses reports addresses that are used twice; port 0 is a different port each time.
func (s *processSections) adminAddresses(c *Config) {
	used := map[Address]string{}
	for _, one := range c.AllEngines() {
		for _, r := range one.Proxy.AllRoutes() {
			for _, a := range r.Listen {
				used[a] = "the proxy"
			}
		}
	}
	for i, l := range c.Admin {
		path := s.adminPath(i) + ".listen"
		for j, a := range l.Listen {
			if by := used[a]; by != "" && !strings.HasSuffix(a.Address, ":0") {
				s.add(fmt.Sprintf("%s[%d]", path, j), "%s is already used by %s: choose another port", a, by)
			}
			used[a] = "another admin listener"
		}
	}
}
