package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/config"
)

// certificate writes a self-signed certificate for 127.0.0.1 and its key.
func certificate(t *testing.T) (certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	number, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: number, Subject: pkix.Name{CommonName: "dpwatch test"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour * 60),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return file(t, "tls.crt", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))),
		file(t, "tls.key", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})))
}

// Two routes in one process: one over TCP that terminates TLS, one on a Unix socket that passes it through. Queries to
// both engines are audited, and status and metrics distinguish the routes.
func TestRunRoutes(t *testing.T) {
	t.Parallel()
	direct := copies(t)
	cfg, err := pgx.ParseConfig(direct)
	if err != nil {
		t.Fatal(err)
	}
	certFile, keyFile := certificate(t)
	socket := filepath.Join(t.TempDir(), ".s.PGSQL.6433")
	path := file(t, "dpwatch.yaml", fmt.Sprintf(`
engines:
  - name: shop
    proxy:
    - {name: tcp, listen: 127.0.0.1:0, upstream: "%s:%d", tls: {mode: require, certificate: %s, key: %s}}
    - {name: local, listen: "unix:%s", upstream: "%s:%d", tls: {mode: passthrough}}
admin: {listen: 127.0.0.1:0}
shadow: {dsn: %q}
privacy: {protected: [public.people]}
claims: {safe_functions: [noisy], trust: [comment]}
`, cfg.Host, cfg.Port, certFile, keyFile, socket, cfg.Host, cfg.Port, direct))
	s := &sidecar{direct: direct}
	s.run(t, path)
	s.until(t, "the log says loudly that TLS is passed through", func() bool { return strings.Contains(s.log.String(), "NOT captured") })
	secure := strings.Replace(s.dsn(), "sslmode=disable", "sslmode=require", 1)
	local := fmt.Sprintf("host=%s port=6433 user=%s password=%s dbname=%s sslmode=disable", filepath.Dir(socket), cfg.User, cfg.Password, cfg.Database)
	for _, dsn := range []string{secure, local} {
		conn, err := pgx.Connect(t.Context(), dsn)
		if err != nil {
			t.Fatal(err)
		}
		exec0(t, conn, "SELECT 1")
		_ = conn.Close(context.Background())
	}
	if _, err := pgx.Connect(t.Context(), s.dsn()); err == nil || !strings.Contains(err.Error(), "28000") {
		t.Errorf("connect without TLS: %v, want SQLSTATE 28000", err)
	}
	_, body := s.get(t, "/api/status")
	type sessions struct {
		Sessions    uint64 `json:"sessions"`
		TLSSessions uint64 `json:"tls_sessions"`
	}
	var status struct {
		Proxy  sessions
		Routes []struct {
			Name, TLS, Captured string
			Listen              []string
			Proxy               sessions
		}
	}
	if err := json.Unmarshal([]byte(body), &status); err != nil {
		t.Fatal(err)
	}
	if status.Proxy.Sessions != 2 || status.Proxy.TLSSessions != 1 || len(status.Routes) != 2 {
		t.Fatalf("status %s", body)
	}
	if r := status.Routes[1]; r.Name != "local" || r.Proxy.Sessions != 1 || r.Listen[0] != socket || !strings.Contains(r.Captured, "not audited") {
		t.Errorf("the second route: %+v", r)
	}
	_, metrics := s.get(t, "/metrics")
	for _, text := range []string{
		"dpwatch_proxy_sessions_total 2", "dpwatch_proxy_tls_sessions_total 1", `dpwatch_uncaptured_sessions_total{reason="tls_passthrough"} 0`,
		`dpwatch_proxy_certificate_expiry_timestamp_seconds{route="tcp"}`, `dpwatch_proxy_refused_total{reason="tls_required"} 1`,
	} {
		if !strings.Contains(metrics, text) {
			t.Errorf("/metrics lacks %s", text)
		}
	}
	// A killed process leaves its socket; the next process replaces it.
	_ = s.Process.Kill()
	<-s.ended
	(&sidecar{}).run(t, path)
}

// TLS on both legs with two certificates breaks SCRAM with channel binding: dpwatch refuses to start.
func TestRunRefusesOtherCertificate(t *testing.T) {
	t.Parallel()
	engineCert, engineKey := certificate(t)
	pair, err := tls.LoadX509KeyPair(engineCert, engineKey)
	if err != nil {
		t.Fatal(err)
	}
	engine, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	go func() {
		for {
			conn, err := engine.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				if _, err := io.ReadFull(conn, make([]byte, 8)); err != nil {
					return
				}
				_, _ = conn.Write([]byte{'S'})
				_ = tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{pair}}).Handshake()
			}()
		}
	}()
	certFile, keyFile := certificate(t)
	base := fmt.Sprintf(`
proxy: {listen: 127.0.0.1:0, upstream: %q, tls: {mode: allow, certificate: %s, key: %s}, upstream_tls: {mode: require}}
shadow: {dsn: "postgres://x@127.0.0.1:1/x"}
privacy: {protected: [public.people]}
`, engine.Addr(), certFile, keyFile)
	patient := []string{config.TuningVariable + `={"dial_timeout": "10m"}`}
	refused := startProgramWith(t, patient, "run", "--config", file(t, "other.yaml", base))
	<-refused.ended
	if code := refused.ProcessState.ExitCode(); code != exitFailure || !strings.Contains(refused.log.String(), "engine's own certificate") {
		t.Errorf("exit code %d\n%s", code, refused.log.String())
	}
	for name, text := range map[string]string{
		"the engine's own": strings.NewReplacer(certFile, engineCert, keyFile, engineKey).Replace(base),
		"assumed":          strings.Replace(base, "mode: allow", "mode: allow, same_certificate: assume", 1),
	} {
		t.Log(name)
		(&sidecar{environ: patient}).run(t, file(t, "fine.yaml", text))
	}
}
