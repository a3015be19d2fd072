package config

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// routes validates the single route or the list of routes.
func (d *decoder) routes(p *Proxy) {
	for i := range p.Routes {
		p.Routes[i].setDefaults()
	}
	if len(p.Routes) == 0 {
		one := p.AllRoutes()[0]
		d.route("proxy", &one)
		return
	}
	if len(p.Listen) > 0 || !p.Upstream.IsZero() {
		d.add("proxy.routes", "give either listen and upstream, or routes: move listen and upstream into the list")
	}
	silent := Default().Proxy
	for key, given := range map[string]bool{
		"tls": p.TLS != silent.TLS, "upstream_tls": p.UpstreamTLS != silent.UpstreamTLS, "proxy_protocol": len(p.ProxyProtocol) > 0,
	} {
		if given {
			d.add("proxy."+key, "must be set in each of proxy.routes")
		}
	}
	names, addresses := map[string]bool{}, map[Address]bool{}
	for i := range p.Routes {
		r, path := &p.Routes[i], fmt.Sprintf("proxy.routes[%d]", i)
		d.route(path, r)
		if names[r.Name] && r.Name != "" {
			d.add(path+".name", "%q is also the name of another route", r.Name)
		}
		names[r.Name] = true
		for j, a := range r.Listen {
			if addresses[a] {
				d.add(fmt.Sprintf("%s.listen[%d]", path, j), "%s also belongs to another route", a)
			}
			addresses[a] = true
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
