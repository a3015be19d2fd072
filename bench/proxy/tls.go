package proxy

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/dpwatch/dpwatch/internal/pgtemp"
)

// identity is the common certificate of the engine and of the proxies, as files.
type identity struct{ cert, key string }

// secure measures with TLS from the client: direct, and through the proxies with the engine in plain text and with TLS
// on both sides.
func secure(ctx context.Context, c *pgtemp.Cluster, o options) error {
	dir, err := os.MkdirTemp("", "benchproxy-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	id, err := newIdentity(dir)
	if err != nil {
		return err
	}
	if err := encrypt(ctx, c, id); err != nil {
		return err
	}
	direct := &target{name: "direct", dsn: dsn(fmt.Sprintf("127.0.0.1:%d", c.Port()), true)}
	targets := []*target{direct}
	defer func() {
		for _, t := range targets {
			t.stop()
		}
	}()
	for _, leg := range []struct{ name, dpwatch, bouncer string }{
		{"plain to the engine", "disable", "disable"}, {"TLS on both legs", "require", "require"},
	} {
		bouncer, err := startPgBouncer(ctx, c.Port(), bouncerTLS{id, leg.bouncer})
		if err != nil {
			return err
		}
		if bouncer != nil {
			bouncer.name = "pgbouncer, " + leg.name
			bouncer.rival = bouncer.name
			targets = append(targets, bouncer)
		}
		if o.dpwatch == "" {
			continue
		}
		for _, v := range append([]variant{standard[0]}, o.variants...) {
			v.proxy = fmt.Sprintf(", tls: {mode: require, certificate: %q, key: %q}, upstream_tls: {mode: %s}", id.cert, id.key, leg.dpwatch)
			v.secure = true
			v.name += ", " + leg.name
			t, err := startDpwatch(ctx, o.dpwatch, v, c.Port(), c.DSN("postgres"))
			if err != nil {
				return err
			}
			if bouncer != nil {
				t.rival = bouncer.name
			}
			targets = append(targets, t)
		}
	}
	if o.dpwatch != "" {
		t, err := startDpwatch(ctx, o.dpwatch, variant{
			name: "dpwatch, passthrough", protected: standard[0].protected, secure: true, capture: true, proxy: ", tls: {mode: passthrough}",
		}, c.Port(), c.DSN("postgres"))
		if err != nil {
			return err
		}
		targets = append(targets, t)
	}
	if o.sets["tls"] {
		fmt.Print("\nWith TLS from the client:\n\n")
		if err := transactions(ctx, targets, o); err != nil {
			return err
		}
	}
	if o.sets["tlsbulk"] {
		return bulk(ctx, targets, o)
	}
	return nil
}

// newIdentity writes a certificate for 127.0.0.1 and its key.
func newIdentity(dir string) (identity, error) {
	id := identity{filepath.Join(dir, "server.crt"), filepath.Join(dir, "server.key")}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return id, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "benchproxy"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(30 * 24 * time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return id, err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return id, err
	}
	if err := os.WriteFile(id.cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		return id, err
	}
	return id, os.WriteFile(id.key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600)
}

// encrypt enables TLS on the server, in addition to plain text.
func encrypt(ctx context.Context, c *pgtemp.Cluster, id identity) error {
	data := filepath.Join(c.Dir(), "data")
	info, err := os.Stat(data)
	if err != nil {
		return err
	}
	owner := info.Sys().(*syscall.Stat_t)
	if err := give(id, data, int(owner.Uid), int(owner.Gid)); err != nil {
		return err
	}
	for _, sql := range []string{"ALTER SYSTEM SET ssl = on", "SELECT pg_reload_conf()"} {
		if err := execute(ctx, c, sql); err != nil {
			return err
		}
	}
	var last error
	for range 100 {
		conn, err := greet(dsn(fmt.Sprintf("127.0.0.1:%d", c.Port()), true))
		if err == nil {
			return conn.Close()
		}
		last = err
		time.Sleep(100 * time.Millisecond)
	}
	return fmt.Errorf("the server accepts no TLS connection: %w", last)
}

// give copies the certificate and the key to a directory, readable for a user.
func give(id identity, dir string, uid, gid int) error {
	for _, path := range []string{id.cert, id.key} {
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		to := filepath.Join(dir, filepath.Base(path))
		if err := os.WriteFile(to, content, 0o600); err != nil {
			return err
		}
		if err := os.Chown(to, uid, gid); err != nil {
			return err
		}
	}
	return nil
}
