package proxy_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/internal/eventually"
	"github.com/dpwatch/dpwatch/internal/longtest"
	"github.com/dpwatch/dpwatch/internal/pgtemp"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
	"github.com/dpwatch/dpwatch/proxy"
)

// secureCluster is a PostgreSQL with TLS and SCRAM.
type secureCluster struct {
	*pgtemp.Cluster
	ca    *authority
	id    *identity // the server's
	other *identity // another one from the same CA
	ann   *identity // a client's
}

// hbaSecure has a line for every authentication method that depends on TLS.
const hbaSecure = `
local all all trust
hostssl all ann 127.0.0.1/32 cert
host all md5er 127.0.0.1/32 md5
host all all 127.0.0.1/32 scram-sha-256
`

// startSecure starts the cluster, of the programs in binDir ("" = the default), and enables TLS. The cluster stops with
// the test.
func startSecure(t *testing.T, binDir string) *secureCluster {
	t.Helper()
	pgtest.NeedsServer(t)
	c := &secureCluster{ca: newAuthority(t)}
	c.id, c.other, c.ann = c.ca.issue(t, "db.test", loopback), c.ca.issue(t, "db.test", loopback), c.ca.issue(t, "ann", nil)
	var err error
	if c.Cluster, err = pgtemp.Start(t.Context(), pgtemp.Options{BinDir: binDir}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	data := filepath.Join(c.Dir(), "data")
	for name, content := range map[string][]byte{"server.crt": c.id.certPEM, "server.key": c.id.keyPEM, "pg_hba.conf": []byte(hbaSecure)} {
		path := filepath.Join(data, name)
		write(t, path, content)
		ownAs(t, path, data)
	}
	ca, err := os.ReadFile(c.ca.file)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(data, "root.crt"), ca)
	ownAs(t, filepath.Join(data, "root.crt"), data)
	conn := pgtest.Connect(t, c.SocketDSN("postgres"))
	for _, sql := range []string{
		"ALTER SYSTEM SET ssl = on", "ALTER SYSTEM SET ssl_ca_file = 'root.crt'", "CREATE ROLE ann LOGIN",
		"SET password_encryption = 'md5'", fmt.Sprintf("CREATE ROLE md5er LOGIN PASSWORD '%s'", c.Password()), "SELECT pg_reload_conf()",
	} {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	eventually.True(t, "PostgreSQL has TLS", func() bool {
		direct, err := pgx.Connect(t.Context(), strings.Replace(c.DSN("postgres"), "disable", "require", 1))
		if err == nil {
			_ = direct.Close(context.Background())
		}
		return err == nil
	})
	return c
}

// ownAs gives a file the owner of another.
func ownAs(t *testing.T, path, like string) {
	t.Helper()
	info, err := os.Stat(like)
	if err != nil {
		t.Fatal(err)
	}
	owner := info.Sys().(*syscall.Stat_t)
	if err := os.Chown(path, int(owner.Uid), int(owner.Gid)); err != nil {
		t.Fatal(err)
	}
}

func (c *secureCluster) upstream() proxy.Address {
	return proxy.Address{Network: "tcp", Address: net.JoinHostPort(c.Host(), strconv.Itoa(c.Port()))}
}

// legs returns a change of a proxy's options for TLS on its legs; a nil identity means no certificate.
func legs(client proxy.TLSMode, id *identity, upstream proxy.UpstreamTLSMode) func(*proxy.Options) {
	return func(o *proxy.Options) {
		o.ClientTLS.Mode = client
		if id != nil {
			o.ClientTLS.CertFile, o.ClientTLS.KeyFile = id.certFile, id.keyFile
		}
		o.UpstreamTLS.Mode = upstream
	}
}

// ask connects to addr with a client (psql, psql with libpq 18, pgx) and returns whether the server sees TLS ("true" or
// "false"), or the client's error.
func (c *secureCluster) ask(t *testing.T, client, addr, extra string) (string, error) {
	t.Helper()
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	const sql = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()"
	dsn := fmt.Sprintf("host=%s port=%s user=postgres password=%s dbname=postgres connect_timeout=300 %s", host, port, c.Password(), extra)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if client != "pgx" {
		cmd := exec.CommandContext(ctx, postgres.tool("psql"), "-XAtc", sql, dsn+" gssencmode=disable")
		cmd.Env = append(os.Environ(), "LC_ALL=C", "HOME="+t.TempDir())
		if client == libpq18 {
			cmd.Env = append(cmd.Env, libpq18Env())
		}
		out, err := cmd.CombinedOutput()
		if err != nil {
			return "", fmt.Errorf("%w: %s", err, out)
		}
		return map[string]string{"t": "true", "f": "false"}[strings.TrimSpace(string(out))], nil
	}
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return "", err
	}
	defer conn.Close(context.Background())
	var secured bool
	err = conn.QueryRow(ctx, sql).Scan(&secured)
	return strconv.FormatBool(secured), err
}

// TestTLSWithPostgres runs all tests that need a PostgreSQL with TLS.
func TestTLSWithPostgres(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	postgres.ensure(t) // for its psql
	if _, err := exec.LookPath(postgres.tool("psql")); err != nil {
		t.Log("no psql here: its cells run with pgx alone")
	}
	c := startSecure(t, "")
	t.Run("channel binding", func(t *testing.T) { testChannelBinding(t, c) })
	t.Run("client certificates", func(t *testing.T) { testCertificateRequest(t, c) })
	t.Run("other certificate", func(t *testing.T) { testOtherCertificate(t, c) })
	t.Run("upstream modes", func(t *testing.T) { testUpstreamModes(t, c) })
	t.Run("certificate rotation", func(t *testing.T) { testRotation(t, c) })
	t.Run("cancel", func(t *testing.T) { testCancelTLS(t, c) })
	t.Run("bulk and capture", func(t *testing.T) { testBulkTLS(t, c) })
}

// testChannelBinding tests the table of docs/tls.md: every supported combination, with clients that must get through
// and clients that must not.
func testChannelBinding(t *testing.T, c *secureCluster) {
	const fails = "fails"
	combinations := []struct {
		name   string
		change func(*proxy.Options)
		want   map[string]string // connection options -> what the server sees
	}{
		{"no TLS", legs(proxy.TLSDisable, nil, proxy.UpstreamDisable), map[string]string{
			"sslmode=disable": "false", "sslmode=prefer": "false", "sslmode=require": fails,
			"sslmode=disable channel_binding=require": fails,
		}},
		{"TLS to clients, plain to the engine", legs(proxy.TLSRequire, c.other, proxy.UpstreamDisable), map[string]string{
			"sslmode=require": "false", "sslmode=require channel_binding=disable": "false", "sslmode=disable": fails,
			"sslmode=require channel_binding=require": fails, "sslmode=verify-full sslrootcert=" + c.ca.file: "false",
			"sslmode=require user=md5er": "false",
		}},
		{"the engine's certificate, TLS to the engine", legs(proxy.TLSRequire, c.id, proxy.UpstreamRequire), map[string]string{
			"sslmode=require": "true", "sslmode=require channel_binding=disable": "true", "sslmode=require channel_binding=require": "true",
			"sslmode=prefer": "true", "sslmode=disable": fails, "sslmode=verify-full sslrootcert=" + c.ca.file: "true",
			"sslmode=require channel_binding=require sslnegotiation=direct":      "true",
			"sslmode=verify-full sslnegotiation=direct sslrootcert=" + c.ca.file: "true",
			"sslmode=require user=md5er":                                         "true",
		}},
		{"the same, clients as they like", legs(proxy.TLSAllow, c.id, proxy.UpstreamRequire), map[string]string{
			"sslmode=disable": "true", "sslmode=prefer": "true", "sslmode=require channel_binding=require": "true",
			"sslmode=disable channel_binding=require": fails, "sslmode=disable user=md5er": "true",
		}},
		{"plain to clients, TLS to the engine", legs(proxy.TLSDisable, nil, proxy.UpstreamRequire), map[string]string{
			"sslmode=disable": "true", "sslmode=prefer": "true", "sslmode=disable channel_binding=disable": "true",
			"sslmode=disable channel_binding=require": fails, "sslmode=require": fails, "sslmode=disable user=md5er": "true",
		}},
		{"passed through", legs(proxy.TLSPassthrough, nil, proxy.UpstreamDisable), map[string]string{
			"sslmode=disable": "false", "sslmode=prefer": "true", "sslmode=require channel_binding=require": "true",
			"sslmode=verify-full sslrootcert=" + c.ca.file:                                                                  "true",
			"sslmode=require user=ann sslcert=" + c.ann.certFile + " sslkey=" + c.ann.keyFile + " sslrootcert=" + c.ca.file: "true",
		}},
	}
	clients := []string{"psql", "pgx"}
	if postgres18.binDir != "" {
		clients = append(clients, libpq18)
	}
	for _, combination := range combinations {
		p := start(t, c.upstream(), combination.change)
		if err := p.CheckUpstream(t.Context()); err != nil {
			t.Errorf("%s: refused at the start: %v", combination.name, err)
		}
		for options, want := range combination.want {
			for _, client := range clients {
				if client == "psql" && strings.Contains(options, "sslnegotiation") {
					continue // new in libpq 17
				}
				got, err := c.ask(t, client, p.addr, options)
				switch {
				case want == fails && err == nil:
					t.Errorf("%s: %s with %s gets through", combination.name, client, options)
				case want != fails && (err != nil || got != want):
					t.Errorf("%s: %s with %s: TLS %q at the server, %v; want %s", combination.name, client, options, got, err, want)
				}
			}
		}
		if got := p.Stats(); got.UncapturedPairing+got.UncapturedProtocol+got.UncapturedPanic != 0 || got.FailedSessions != 0 {
			t.Errorf("%s: stats %+v", combination.name, got)
		}
	}
}

// testCertificateRequest: the proxy requests a client certificate if the engine does, as libpq 16 with
// sslcertmode=require needs. The certificate is not verified: the engine cannot see it.
func testCertificateRequest(t *testing.T, c *secureCluster) {
	for name, test := range map[string]struct {
		change func(*proxy.Options)
		want   bool
	}{
		"TLS to the engine": {legs(proxy.TLSAllow, c.id, proxy.UpstreamRequire), true},
		"the same, assumed": {func(o *proxy.Options) {
			legs(proxy.TLSRequire, c.id, proxy.UpstreamRequire)(o)
			o.ClientTLS.AssumeSameCertificate = true
		}, true},
		"plain to the engine": {legs(proxy.TLSAllow, c.id, proxy.UpstreamDisable), false},
	} {
		p := start(t, c.upstream(), test.change)
		if err := p.CheckUpstream(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		requested := false
		cfg := &tls.Config{InsecureSkipVerify: true, GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			requested = true
			return &c.other.pair, nil
		}}
		p.dialTLS(t, cfg)
		if requested != test.want {
			t.Errorf("%s: a certificate is requested: %v, want %v", name, requested, test.want)
		}
		if postgres18.binDir == "" {
			continue
		}
		options := "sslmode=require sslcertmode=require sslcert=" + c.ann.certFile + " sslkey=" + c.ann.keyFile
		if _, err := c.ask(t, libpq18, p.addr, options); (err == nil) != test.want {
			t.Errorf("%s: libpq with sslcertmode=require: %v, want success %v", name, err, test.want)
		}
		if _, err := c.ask(t, libpq18, p.addr, "sslmode=require"); err != nil {
			t.Errorf("%s: libpq without a certificate: %v", name, err)
		}
	}
}

// testOtherCertificate: TLS on both legs with two certificates is reported by CheckUpstream, and refused for each
// session.
func testOtherCertificate(t *testing.T, c *secureCluster) {
	p := start(t, c.upstream(), legs(proxy.TLSRequire, c.other, proxy.UpstreamRequire))
	var certificate *proxy.CertificateError
	if err := p.CheckUpstream(t.Context()); !errors.As(err, &certificate) || !strings.Contains(err.Error(), "own certificate") {
		t.Errorf("CheckUpstream: %v, want a CertificateError that says what to do", err)
	}
	for _, client := range []string{"psql", "pgx"} {
		if _, err := c.ask(t, client, p.addr, "sslmode=require"); err == nil || !strings.Contains(err.Error(), "certificate differs from the engine's") {
			t.Errorf("%s: %v, want the proxy's refusal", client, err)
		}
	}
	assumed := start(t, c.upstream(), func(o *proxy.Options) {
		legs(proxy.TLSRequire, c.other, proxy.UpstreamRequire)(o)
		o.ClientTLS.AssumeSameCertificate = true
	})
	if err := assumed.CheckUpstream(t.Context()); err != nil {
		t.Errorf("CheckUpstream although it is assumed: %v", err)
	}
	for options, want := range map[string]bool{"channel_binding=disable": true, "channel_binding=prefer": false} {
		if _, err := c.ask(t, "psql", assumed.addr, "sslmode=require "+options); (err == nil) != want {
			t.Errorf("assumed, %s: %v", options, err)
		}
	}
	away := start(t, proxy.Address{Network: "unix", Address: filepath.Join(t.TempDir(), "none")}, nil)
	if err := away.CheckUpstream(t.Context()); err != nil {
		t.Errorf("CheckUpstream without need: %v", err)
	}
	gone := start(t, nobody, legs(proxy.TLSRequire, c.id, proxy.UpstreamRequire))
	var upstream *proxy.UpstreamError
	if err := gone.CheckUpstream(t.Context()); !errors.As(err, &upstream) {
		t.Errorf("CheckUpstream of an engine that is away: %v, want an UpstreamError", err)
	}
}

func testUpstreamModes(t *testing.T, c *secureCluster) {
	stranger := newAuthority(t)
	tests := []struct {
		name    string
		tls     proxy.UpstreamTLS
		options string
		want    bool
	}{
		{"prefer", proxy.UpstreamTLS{Mode: proxy.UpstreamPrefer}, "", true},
		{"verify-ca", proxy.UpstreamTLS{Mode: proxy.UpstreamVerifyCA, CAFile: c.ca.file, ServerName: "elsewhere.test"}, "", true},
		{"verify-ca of another", proxy.UpstreamTLS{Mode: proxy.UpstreamVerifyCA, CAFile: stranger.file}, "", false},
		{"verify-full by address", proxy.UpstreamTLS{Mode: proxy.UpstreamVerifyFull, CAFile: c.ca.file}, "", true},
		{"verify-full by name", proxy.UpstreamTLS{Mode: proxy.UpstreamVerifyFull, CAFile: c.ca.file, ServerName: "db.test"}, "", true},
		{"verify-full of another name", proxy.UpstreamTLS{Mode: proxy.UpstreamVerifyFull, CAFile: c.ca.file, ServerName: "elsewhere.test"}, "", false},
		{"verify-full of another CA", proxy.UpstreamTLS{Mode: proxy.UpstreamVerifyFull, CAFile: stranger.file}, "", false},
		{"verify-full of the system", proxy.UpstreamTLS{Mode: proxy.UpstreamVerifyFull}, "", false},
		{"with a certificate", proxy.UpstreamTLS{Mode: proxy.UpstreamRequire, CertFile: c.ann.certFile, KeyFile: c.ann.keyFile}, "user=ann", true},
		{"without one where it is needed", proxy.UpstreamTLS{Mode: proxy.UpstreamRequire}, "user=ann", false},
	}
	for _, test := range tests {
		p := start(t, c.upstream(), func(o *proxy.Options) { o.UpstreamTLS = test.tls })
		got, err := c.ask(t, "pgx", p.addr, "sslmode=disable "+test.options)
		if (err == nil) != test.want || test.want && got != "true" {
			t.Errorf("%s: TLS %q at the server, %v; want success %v", test.name, got, err, test.want)
		}
	}
}

// testRotation: the proxy's files are replaced before the engine has reloaded its own. Clients get the certificate that
// the engine still shows.
func testRotation(t *testing.T, c *secureCluster) {
	dir := t.TempDir()
	mounted := &identity{certFile: filepath.Join(dir, "tls.crt"), keyFile: filepath.Join(dir, "tls.key")}
	write(t, mounted.certFile, c.id.certPEM)
	write(t, mounted.keyFile, c.id.keyPEM)
	p := start(t, c.upstream(), legs(proxy.TLSRequire, mounted, proxy.UpstreamRequire))
	for _, id := range []*identity{c.id, c.other} {
		write(t, mounted.certFile, id.certPEM)
		write(t, mounted.keyFile, id.keyPEM)
		if _, err := c.ask(t, "psql", p.addr, "sslmode=require channel_binding=require"); err != nil {
			t.Error(err)
		}
	}
	if n := p.Stats().CertificateLoads; n != 1 {
		t.Errorf("%d reloads, want 1", n)
	}
}

func testCancelTLS(t *testing.T, c *secureCluster) {
	watch := pgtest.Connect(t, c.SocketDSN("postgres"))
	for name, change := range map[string]func(*proxy.Options){
		"terminated":     legs(proxy.TLSRequire, c.id, proxy.UpstreamRequire),
		"plain client":   legs(proxy.TLSDisable, nil, proxy.UpstreamRequire),
		"passed through": legs(proxy.TLSPassthrough, nil, proxy.UpstreamDisable),
	} {
		p := start(t, c.upstream(), change)
		host, port, err := net.SplitHostPort(p.addr)
		if err != nil {
			t.Fatal(err)
		}
		conn, err := pgx.Connect(t.Context(), fmt.Sprintf("host=%s port=%s user=postgres password=%s dbname=postgres sslmode=prefer", host, port, c.Password()))
		if err != nil {
			t.Fatal(err)
		}
		failed := make(chan error, 1)
		go func() {
			_, err := conn.Exec(t.Context(), "SELECT pg_sleep(600)")
			failed <- err
		}()
		eventually.True(t, "the statement runs", func() bool { return backends(t, watch, "SELECT pg_sleep(600)%") == 1 })
		if err := conn.PgConn().CancelRequest(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := <-failed; sqlState(err) != "57014" {
			t.Errorf("%s: %v, want SQLSTATE 57014", name, err)
		}
		_ = conn.Close(context.Background())
	}
}

// testBulkTLS: large amounts of data in both directions; the statements are captured.
func testBulkTLS(t *testing.T, c *secureCluster) {
	p := start(t, c.upstream(), legs(proxy.TLSRequire, c.id, proxy.UpstreamRequire))
	host, port, err := net.SplitHostPort(p.addr)
	if err != nil {
		t.Fatal(err)
	}
	conn := pgtest.Connect(t, fmt.Sprintf("host=%s port=%s user=postgres password=%s dbname=postgres sslmode=require", host, port, c.Password()))
	const lines = 30_000
	if _, err := conn.Exec(t.Context(), "CREATE TEMP TABLE bulk (n int, s text)"); err != nil {
		t.Fatal(err)
	}
	in, out := io.Pipe()
	go func() {
		buffered := bufio.NewWriterSize(out, 64<<10)
		for i := range lines {
			_, _ = fmt.Fprintf(buffered, "%d\tline number %d\n", i, i)
		}
		_ = buffered.Flush()
		_ = out.Close()
	}()
	if tag, err := conn.PgConn().CopyFrom(t.Context(), in, "COPY bulk FROM STDIN"); err != nil || tag.RowsAffected() != lines {
		t.Fatalf("copied %v, %v", tag, err)
	}
	rows, err := conn.Query(t.Context(), "SELECT n, s FROM bulk ORDER BY n")
	if err != nil {
		t.Fatal(err)
	}
	i := 0
	for rows.Next() {
		var n int
		var s string
		if err := rows.Scan(&n, &s); err != nil || n != i || s != "line number "+strconv.Itoa(i) {
			t.Fatalf("row %d: %d, %q, %v", i, n, s, err)
		}
		i++
	}
	if rows.Err() != nil || i != lines {
		t.Errorf("%d rows, %v", i, rows.Err())
	}
	p.sink.find(t, "SELECT n, s FROM bulk ORDER BY n")
}
