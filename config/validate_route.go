package config

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
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
		d.add("proxy.routes", "give either listen and upstream, or routes: move the former into the list")
	}
	silent := Default().Proxy
	for key, given := range map[string]bool{
		"tls": p.TLS != silent.TLS, "upstream_tls": p.UpstreamTLS != silent.UpstreamTLS, "proxy_protocol": len(p.ProxyProtocol) > 0,
	} {
		if given {
			d.add("proxy."+key, "belongs into each of the routes")
		}
	}
	names, addresses := map[string]bool{}, map[Address]bool{}
	for i := range p.Routes {
		r, path := &p.Routes[i], fmt.Sprintf("proxy.routes[%d]", i)
		d.route(path, r)
		if names[r.Name] && r.Name != "" {
			d.add(path+".name", "%q is the name of another route, too", r.Name)
		}
		names[r.Name] = true
		for j, a := range r.Listen {
			if addresses[a] {
				d.add(fmt.Sprintf("%s.listen[%d]", path, j), "%s belongs to another route, too", a)
			}
			addresses[a] = true
		}
	}
}

func (d *decoder) route(path string, r *Route) {
	if len(r.Listen) == 0 {
		d.add(path+".listen", "missing: where clients connect, 127.0.0.1:6432, say")
	}
	if r.Upstream.IsZero() {
		d.add(path+".upstream", "missing: the engine's address, 127.0.0.1:5432, say")
	}
	for i, a := range r.Listen {
		if a == r.Upstream && !a.IsZero() {
			d.add(fmt.Sprintf("%s.listen[%d]", path, i), "is the upstream itself: the proxy would call itself")
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
			d.add(path+".mode", "%s uses no certificate: say allow or require, or remove certificate and key", t.Mode)
		}
	default:
		d.add(path+".mode", "must be disable, allow, require or passthrough")
	}
	if t.ClientCA != "" && t.Mode != "require" {
		d.add(path+".client_ca", "needs mode require: otherwise clients without TLS would get in without a certificate")
	}
	if t.SameCertificate != "check" && t.SameCertificate != "assume" {
		d.add(path+".same_certificate", "must be check or assume")
	}
	d.pair(path, t.Certificate, t.Key)
	d.pool(path+".client_ca", t.ClientCA)
}

func (d *decoder) upstreamTLS(path string, r *Route) {
	t := &r.UpstreamTLS
	if !slices.Contains([]string{"disable", "prefer", "require", "verify-ca", "verify-full"}, t.Mode) {
		d.add(path+".mode", "must be disable, prefer, require, verify-ca or verify-full")
		return
	}
	if t.Mode == "disable" {
		if t.CA != "" || t.Certificate != "" || t.Key != "" || t.ServerName != "" {
			d.add(path+".mode", "is disable: say prefer, require, verify-ca or verify-full, or remove the other keys")
		}
		return
	}
	switch {
	case r.Upstream.Network == "unix":
		d.add(path+".mode", "must be disable: the upstream is a unix socket, which needs no TLS")
	case r.TLS.Mode == "passthrough":
		d.add(path+".mode", "must be disable: tls.mode passthrough takes the clients' own TLS to the engine")
	}
	verifies := t.Mode == "verify-ca" || t.Mode == "verify-full"
	if t.CA != "" && !verifies {
		d.add(path+".ca", "mode %s verifies nothing: say verify-ca or verify-full, or remove the ca", t.Mode)
	}
	if t.CA == "" && t.Mode == "verify-ca" {
		d.add(path+".ca", "missing: verify-ca needs the PEM file of who issued the engine's certificate")
	}
	if (t.Certificate == "") != (t.Key == "") {
		d.add(path+".certificate", "certificate and key go together: give both or neither")
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
		d.add(path, "%s may not be read by this user", file)
	case err != nil:
		d.add(path, "%v", err)
	}
	return content, err == nil
}
