package config

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// routes validates the routes of all engines.
func (s *processSections) routes(c *Config) {
	names, addresses := map[string]bool{}, map[Address]bool{}
	add := func(path string, r *Route) {
		r.setDefaults()
		s.route(path, r)
		if names[r.Name] && r.Name != "" {
			s.add(path+".name", "%q is also the name of another route", r.Name)
		}
		names[r.Name] = true
		for i, a := range r.Listen {
			if addresses[a] && !strings.HasSuffix(a.Address, ":0") {
				s.add(fmt.Sprintf("%s.listen[%d]", path, i), "%s also belongs to another route", a)
			}
			addresses[a] = true
		}
	}
	if top, ok := c.topLevel(); ok {
		add("proxy", &top.Proxy.AllRoutes()[0])
	}
	for i := range c.Engines {
		path := fmt.Sprintf("engines[%d].proxy", i)
		if len(c.Engines[i].Proxy) == 0 {
			s.add(path, "missing: the address for clients and that of the engine, for example {listen: 127.0.0.1:6432, upstream: 127.0.0.1:5432}")
		}
		for j := range c.Engines[i].Proxy {
			one := path
			if item := fmt.Sprintf("%s[%d]", path, j); s.lines[item] > 0 {
				one = item
			}
			add(one, &c.Engines[i].Proxy[j])
		}
	}
}

func (s *processSections) route(path string, r *Route) {
	if len(r.Listen) == 0 {
		s.add(path+".listen", "missing: the address for clients, for example 127.0.0.1:6432")
	}
	if r.Upstream.IsZero() {
		s.add(path+".upstream", "missing: the address of the engine, for example 127.0.0.1:5432")
	}
	for i, a := range r.Listen {
		if a == r.Upstream && !a.IsZero() {
			s.add(fmt.Sprintf("%s.listen[%d]", path, i), "is also the upstream: the proxy would connect to itself")
		}
	}
	s.clientTLS(path+".tls", &r.TLS)
	s.upstreamTLS(path+".upstream_tls", r)
}

func (s *processSections) clientTLS(path string, t *TLS) {
	switch t.Mode {
	case "allow", "require":
		if t.Certificate == "" {
			s.add(path+".certificate", "missing: mode %s needs a PEM file, the server's certificate first, then intermediates", t.Mode)
		}
		if t.Key == "" {
			s.add(path+".key", "missing: mode %s needs the certificate's key, a PEM file", t.Mode)
		}
	case "disable", "passthrough":
		if t.Certificate != "" || t.Key != "" {
			s.add(path+".mode", "%s uses no certificate: set allow or require, or remove certificate and key", t.Mode)
		}
	}
	s.oneOf(path+".mode", t.Mode, "disable", "allow", "require", "passthrough")
	if t.ClientCA != "" && t.Mode != "require" {
		s.add(path+".client_ca", "needs mode require: otherwise clients without TLS could connect without a certificate")
	}
	s.oneOf(path+".same_certificate", t.SameCertificate, "check", "assume")
	s.pair(path, t.Certificate, t.Key)
	s.pool(path+".client_ca", t.ClientCA)
}

func (s *processSections) upstreamTLS(path string, r *Route) {
	t := &r.UpstreamTLS
	if !s.oneOf(path+".mode", t.Mode, "disable", "prefer", "require", "verify-ca", "verify-full") {
		return
	}
	if t.Mode == "disable" {
		if t.CA != "" || t.Certificate != "" || t.Key != "" || t.ServerName != "" {
			s.add(path+".mode", "is disable: set prefer, require, verify-ca or verify-full, or remove the other keys")
		}
		return
	}
	switch {
	case r.Upstream.Network == "unix":
		s.add(path+".mode", "must be disable: the upstream is a unix socket, which needs no TLS")
	case r.TLS.Mode == "passthrough":
		s.add(path+".mode", "must be disable: with tls.mode passthrough, the clients' TLS ends at the engine")
	}
	verifies := t.Mode == "verify-ca" || t.Mode == "verify-full"
	if t.CA != "" && !verifies {
		s.add(path+".ca", "mode %s does not verify the certificate: set verify-ca or verify-full, or remove ca", t.Mode)
	}
	if t.CA == "" && t.Mode == "verify-ca" {
		s.add(path+".ca", "missing: verify-ca needs the PEM file of the certificate authority that issued the engine's certificate")
	}
	if (t.Certificate == "") != (t.Key == "") {
		s.add(path+".certificate", "give both certificate and key, or neither")
	}
	s.pair(path, t.Certificate, t.Key)
	s.pool(path+".ca", t.CA)
}

// pair checks that two files hold a certificate and its key, if files are to be checked.
func (s *processSections) pair(path, certificate, key string) {
	if !s.files || certificate == "" || key == "" {
		return
	}
	cert, ok := s.read(path+".certificate", certificate)
	secret, okKey := s.read(path+".key", key)
	if !ok || !okKey {
		return
	}
	if _, err := tls.X509KeyPair(cert, secret); err != nil {
		s.add(path+".certificate", "%s with the key %s: %v", certificate, key, err)
	}
}

// pool checks that a file holds certificates, if files are to be checked.
func (s *processSections) pool(path, file string) {
	if !s.files || file == "" {
		return
	}
	if content, ok := s.read(path, file); ok && !x509.NewCertPool().AppendCertsFromPEM(content) {
		s.add(path, "%s holds no certificate in PEM", file)
	}
}

func (s *processSections) read(path, file string) ([]byte, bool) {
	content, err := os.ReadFile(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		s.add(path, "%s does not exist", file)
	case errors.Is(err, fs.ErrPermission):
		s.add(path, "%s cannot be read: permission denied", file)
	case err != nil:
		s.add(path, "%v", err)
	}
	return content, err == nil
}
