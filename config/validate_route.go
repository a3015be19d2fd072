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
func (d *decoder) routes(c *Config) {
	names, addresses := map[string]bool{}, map[Address]bool{}
	add := func(path string, r *Route) {
		r.setDefaults()
		d.route(path, r)
		if names[r.Name] && r.Name != "" {
			d.add(path+".name", "%q is also the name of another route", r.Name)
		}
		names[r.Name] = true
		for i, a := range r.Listen {
			if addresses[a] && !strings.HasSuffix(a.Address, ":0") {
				d.add(fmt.Sprintf("%s.listen[%d]", path, i), "%s also belongs to another route", a)
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
			d.add(path, "missing: the address for clients and that of the engine, for example {listen: 127.0.0.1:6432, upstream: 127.0.0.1:5432}")
		}
		for j := range c.Engines[i].Proxy {
			one := path
			if item := fmt.Sprintf("%s[%d]", path, j); d.lines[item] > 0 {
				one = item
			}
			add(one, &c.Engines[i].Proxy[j])
		}
	}
}

func (d *decoder) route(path string, r *Route) {
	if len(r.Listen) == 0 {
		d.add(path+".listen", "missing: the address for clients, for example 127.0.0.1:6432")
	}
	if r.Upstream.IsZero() {
		d.add(path+".upstream", "missing: the address of the engine, for example 127.0.0.1:5432")
	}
	for i, a := range r.Listen {
		if a == r.Upstream && !a.IsZero() {
			d.add(fmt.Sprintf("%s.listen[%d]", path, i), "is also the upstream: the proxy would connect to itself")
		}
	}
	d.clientTLS(path+".tls", &r.TLS)
	d.upstreamTLS(path+".upstream_tls", r)
}

func (d *decoder) clientTLS(path string, t *TLS) {
	switch t.Mode {
	case "allow", "require":
		if t.Certificate == "" {
			d.add(path+".certificate", "missing: mode %s needs a PEM file, the server's certificate first, then intermediates", t.Mode)
		}
		if t.Key == "" {
			d.add(path+".key", "missing: mode %s needs the certificate's key, a PEM file", t.Mode)
		}
	case "disable", "passthrough":
		if t.Certificate != "" || t.Key != "" {
			d.add(path+".mode", "%s uses no certificate: set allow or require, or remove certificate and key", t.Mode)
		}
	}
	d.oneOf(path+".mode", t.Mode, "disable", "allow", "require", "passthrough")
	if t.ClientCA != "" && t.Mode != "require" {
		d.add(path+".client_ca", "needs mode require: otherwise clients without TLS could connect without a certificate")
	}
	d.oneOf(path+".same_certificate", t.SameCertificate, "check", "assume")
	d.pair(path, t.Certificate, t.Key)
	d.pool(path+".client_ca", t.ClientCA)
}

func (d *decoder) upstreamTLS(path string, r *Route) {
	t := &r.UpstreamTLS
	if !d.oneOf(path+".mode", t.Mode, "disable", "prefer", "require", "verify-ca", "verify-full") {
		return
	}
	if t.Mode == "disable" {
		if t.CA != "" || t.Certificate != "" || t.Key != "" || t.ServerName != "" {
			d.add(path+".mode", "is disable: set prefer, require, verify-ca or verify-full, or remove the other keys")
		}
		return
	}
	switch {
	case r.Upstream.Network == "unix":
		d.add(path+".mode", "must be disable: the upstream is a unix socket, which needs no TLS")
	case r.TLS.Mode == "passthrough":
		d.add(path+".mode", "must be disable: with tls.mode passthrough, the clients' TLS ends at the engine")
	}
	verifies := t.Mode == "verify-ca" || t.Mode == "verify-full"
	if t.CA != "" && !verifies {
		d.add(path+".ca", "mode %s does not verify the certificate: set verify-ca or verify-full, or remove ca", t.Mode)
	}
	if t.CA == "" && t.Mode == "verify-ca" {
		d.add(path+".ca", "missing: verify-ca needs the PEM file of the certificate authority that issued the engine's certificate")
	}
	if (t.Certificate == "") != (t.Key == "") {
		d.add(path+".certificate", "give both certificate and key, or neither")
	}
	d.pair(path, t.Certificate, t.Key)
	d.pool(path+".ca", t.CA)
}

// pair checks that two files hold a certificate and its key, if files are to be checked.
func (d *decoder) pair(path, certificate, key string) {
	if !d.files || certificate == "" || key == "" {
		return
	}
	cert, ok := d.read(path+".certificate", certificate)
	secret, okKey := d.read(path+".key", key)
	if !ok || !okKey {
		return
	}
	if _, err := tls.X509KeyPair(cert, secret); err != nil {
		d.add(path+".certificate", "%s with the key %s: %v", certificate, key, err)
	}
}

// pool checks that a file holds certificates, if files are to be checked.
func (d *decoder) pool(path, file string) {
	if !d.files || file == "" {
		return
	}
	if content, ok := d.read(path, file); ok && !x509.NewCertPool().AppendCertsFromPEM(content) {
		d.add(path, "%s holds no certificate in PEM", file)
	}
}

func (d *decoder) read(path, file string) ([]byte, bool) {
	content, err := os.ReadFile(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		d.add(path, "%s does not exist", file)
	case errors.Is(err, fs.ErrPermission):
		d.add(path, "%s cannot be read: permission denied", file)
	case err != nil:
		d.add(path, "%v", err)
	}
	return content, err == nil
}
