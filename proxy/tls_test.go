package proxy_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/dpwatch/dpwatch/internal/eventually"
	"github.com/dpwatch/dpwatch/proxy"
)

// terminate makes a proxy terminate its clients' TLS with the identity.
func terminate(id *identity) func(*proxy.Options) {
	return func(o *proxy.Options) {
		o.ClientTLS = proxy.ClientTLS{Mode: proxy.TLSRequire, CertFile: id.certFile, KeyFile: id.keyFile}
	}
}

// trusting is a client's TLS configuration that expects the authority's certificates.
func trusting(a *authority, name string) *tls.Config {
	roots := x509.NewCertPool()
	roots.AddCert(a.cert)
	return &tls.Config{RootCAs: roots, ServerName: name}
}

// askTLS sends SSLRequest and returns the answer.
func askTLS(t testing.TB, conn net.Conn) byte {
	t.Helper()
	send(t, conn, packet(sslCode, ""))
	answer := make([]byte, 1)
	if _, err := io.ReadFull(conn, answer); err != nil {
		t.Fatalf("answer to SSLRequest: %v", err)
	}
	return answer[0]
}

// dialTLS opens a connection to the proxy with TLS through SSLRequest.
func (r *running) dialTLS(t testing.TB, cfg *tls.Config) *tls.Conn {
	t.Helper()
	raw := r.dial(t)
	if answer := askTLS(t, raw); answer != 'S' {
		t.Fatalf("SSLRequest is answered %q, want S", answer)
	}
	conn := tls.Client(raw, cfg)
	if err := conn.Handshake(); err != nil {
		t.Fatal(err)
	}
	return conn
}

// directConfig is the configuration of a direct TLS client.
func directConfig(a *authority, protocols ...string) *tls.Config {
	cfg := trusting(a, "proxy.test")
	cfg.NextProtos = protocols
	return cfg
}

// TestClientTLS: bytes through TLS reach the engine unchanged, both ways, half-closes included.
func TestClientTLS(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	id := a.issue(t, "proxy.test", nil)
	after := bytes.Repeat([]byte("some bytes of a stream "), 10_000)
	tests := map[string]func(t *testing.T, p *running) *tls.Conn{
		"SSLRequest": func(t *testing.T, p *running) *tls.Conn { return p.dialTLS(t, trusting(a, "proxy.test")) },
		"SSLRequest with ALPN": func(t *testing.T, p *running) *tls.Conn {
			return p.dialTLS(t, directConfig(a, "postgresql"))
		},
		"direct": func(t *testing.T, p *running) *tls.Conn {
			return tls.Client(p.dial(t), directConfig(a, "h2", "postgresql"))
		},
		"TLS 1.2": func(t *testing.T, p *running) *tls.Conn {
			cfg := trusting(a, "proxy.test")
			cfg.MaxVersion = tls.VersionTLS12
			return p.dialTLS(t, cfg)
		},
	}
	for name, dial := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := start(t, echo(t), terminate(id))
			conn := dial(t, p)
			sent := append(hello(), after...)
			go func() {
				_, _ = conn.Write(sent)
				_ = conn.CloseWrite()
			}()
			got, err := io.ReadAll(conn)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, sent) {
				t.Errorf("%d bytes came back, %d were sent, or they differ", len(got), len(sent))
			}
			if got := p.Stats(); got.TLSSessions != 1 || got.Sessions != 1 || got.FailedSessions != 0 || got.CertificateExpiry.IsZero() {
				t.Errorf("stats %+v", got)
			}
		})
	}
}

func TestClientTLSIsRefused(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	id := a.issue(t, "proxy.test", nil)
	t.Run("no TLS where it is required", func(t *testing.T) {
		t.Parallel()
		p := start(t, echo(t), terminate(id))
		conn := p.dial(t)
		send(t, conn, hello())
		if e := refusalOf(t, conn); e.Code != "28000" {
			t.Errorf("SQLSTATE %s, want 28000", e.Code)
		}
		if got := p.Stats(); got.RefusedTLS != 1 || got.Sessions != 0 {
			t.Errorf("stats %+v", got)
		}
	})
	t.Run("data behind SSLRequest", func(t *testing.T) { // CVE-2021-23214
		t.Parallel()
		for name, behind := range map[string][]byte{"startup": hello(), "one byte": {0}, "a handshake": {0x16, 3, 1}} {
			conn := start(t, echo(t), terminate(id)).dial(t)
			send(t, conn, packet(sslCode, ""), behind)
			if e := refusalOf(t, conn); e.Code != "08P01" {
				t.Errorf("%s: SQLSTATE %s, want 08P01", name, e.Code)
			}
		}
	})
	t.Run("encryption requests within TLS", func(t *testing.T) {
		t.Parallel()
		for _, code := range []uint32{sslCode, gssCode} {
			conn := start(t, echo(t), terminate(id)).dialTLS(t, trusting(a, "proxy.test"))
			send(t, conn, packet(code, ""))
			if e := refusalOf(t, conn); e.Code != "0A000" {
				t.Errorf("SQLSTATE %s, want 0A000", e.Code)
			}
		}
	})
	t.Run("TLS within TLS", func(t *testing.T) {
		t.Parallel()
		conn := start(t, echo(t), terminate(id)).dialTLS(t, trusting(a, "proxy.test"))
		send(t, conn, []byte{0x16, 3, 1, 0, 0})
		if got, err := io.ReadAll(conn); len(got) > 0 {
			t.Errorf("got %q, %v; want the end and nothing else", got, err)
		}
	})
	t.Run("direct TLS behind SSLRequest", func(t *testing.T) {
		t.Parallel()
		conn := start(t, echo(t), nil).dial(t)
		if answer := askTLS(t, conn); answer != 'N' {
			t.Fatalf("answer %q, want N", answer)
		}
		send(t, conn, []byte{0x16, 3, 1, 0, 0})
		if got, err := io.ReadAll(conn); err != nil || len(got) != 7 {
			t.Errorf("got % x, %v; want a TLS alert", got, err)
		}
	})
	t.Run("direct TLS without ALPN", func(t *testing.T) {
		t.Parallel()
		for name, protocols := range map[string][]string{"none": nil, "another": {"h2"}} {
			p := start(t, echo(t), terminate(id))
			conn := tls.Client(p.dial(t), directConfig(a, protocols...))
			_, _ = conn.Write(hello())
			if got, err := io.ReadAll(conn); len(got) > 0 || err == nil && name == "another" {
				t.Errorf("%s: got %q, %v; want the end", name, got, err)
			}
			eventually.True(t, "the failure is counted", func() bool { return p.Stats().TLSFailures == 1 })
			if n := p.Stats().Sessions; n != 0 {
				t.Errorf("%s: %d sessions", name, n)
			}
		}
	})
	t.Run("handshake too slow", func(t *testing.T) {
		t.Parallel()
		for limit := 200 * time.Millisecond; ; limit *= 2 { // until it is long enough to reach the handshake on a slow machine
			p := start(t, echo(t), func(o *proxy.Options) {
				terminate(id)(o)
				o.StartupTimeout = limit
			})
			conn := p.dial(t)
			_, _ = conn.Write(packet(sslCode, ""))
			answer := make([]byte, 1)
			if _, err := io.ReadFull(conn, answer); (err != nil || answer[0] != 'S') && limit < patience {
				continue
			}
			if got, err := io.ReadAll(conn); err != nil || len(got) > 0 {
				t.Errorf("got %q, %v; want the end and nothing else", got, err)
			}
			eventually.True(t, "the failure is counted", func() bool { return p.Stats().TLSFailures == 1 })
			break
		}
	})
	t.Run("TLS 1.1", func(t *testing.T) {
		t.Parallel()
		p := start(t, echo(t), terminate(id))
		raw := p.dial(t)
		askTLS(t, raw)
		cfg := trusting(a, "proxy.test")
		cfg.MinVersion, cfg.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
		if err := tls.Client(raw, cfg).Handshake(); err == nil {
			t.Error("the handshake went well")
		}
	})
}

// TestClientCertificates: with a client CA configured, clients without one of its certificates are refused.
func TestClientCertificates(t *testing.T) {
	t.Parallel()
	a, stranger := newAuthority(t), newAuthority(t)
	id := a.issue(t, "proxy.test", nil)
	tests := []struct {
		name   string
		client *identity
		want   bool
	}{{"of the CA", a.issue(t, "ann", nil), true}, {"of another CA", stranger.issue(t, "ann", nil), false}, {"none", nil, false}}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			p := start(t, echo(t), func(o *proxy.Options) {
				terminate(id)(o)
				o.ClientTLS.ClientCAFile = a.file
			})
			cfg := trusting(a, "proxy.test")
			if test.client != nil {
				cfg.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
					return &test.client.pair, nil
				}
			}
			conn := p.dialTLS(t, cfg) // in TLS 1.3 a client learns of its refusal only later
			_, _ = conn.Write(hello())
			_, err := io.ReadFull(conn, make([]byte, len(hello())))
			if (err == nil) != test.want {
				t.Errorf("the session: %v", err)
			}
		})
	}
}

// shown returns the serial number of the certificate that the next client sees.
func shown(t *testing.T, p *running) string {
	t.Helper()
	raw := p.dial(t)
	askTLS(t, raw)
	conn := tls.Client(raw, &tls.Config{InsecureSkipVerify: true})
	if err := conn.Handshake(); err != nil {
		t.Fatal(err)
	}
	_ = raw.Close()
	return conn.ConnectionState().PeerCertificates[0].SerialNumber.String()
}

// TestCertificateIsReplaced: files rewritten, renamed over, or swapped as Kubernetes does it; invalid content changes
// nothing.
func TestCertificateIsReplaced(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	first, second, third := a.issue(t, "proxy.test", nil), a.issue(t, "proxy.test", nil), a.issue(t, "proxy.test", nil)
	number := func(id *identity) string { return id.pair.Leaf.SerialNumber.String() }

	// a Kubernetes volume: tls.crt -> ..data/tls.crt, ..data -> a directory named after a date
	dir := t.TempDir()
	version := func(name string, id *identity) {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, name, "tls.crt"), id.certPEM)
		write(t, filepath.Join(dir, name, "tls.key"), id.keyPEM)
		next := filepath.Join(dir, "..data_tmp")
		if err := errors.Join(os.Symlink(name, next), os.Rename(next, filepath.Join(dir, "..data"))); err != nil {
			t.Fatal(err)
		}
	}
	version("..2026_01", first)
	mounted := &identity{certFile: filepath.Join(dir, "tls.crt"), keyFile: filepath.Join(dir, "tls.key")}
	for _, name := range []string{"tls.crt", "tls.key"} {
		if err := os.Symlink(filepath.Join("..data", name), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	core, logs := observer.New(zap.InfoLevel)
	p := start(t, echo(t), func(o *proxy.Options) {
		terminate(mounted)(o)
		o.Logger = zap.New(core)
	})
	check := func(what string, want *identity, reloads, faults uint64) {
		t.Helper()
		if got := shown(t, p); got != number(want) {
			t.Errorf("%s: another certificate is shown", what)
		}
		if got := p.Stats(); got.CertificateLoads != reloads || got.CertificateFaults != faults {
			t.Errorf("%s: %d reloads and %d faults, want %d and %d", what, got.CertificateLoads, got.CertificateFaults, reloads, faults)
		}
	}
	check("at first", first, 0, 0)
	version("..2026_02", second)
	check("after a swap", second, 1, 0)

	current := filepath.Join(dir, "..2026_02")
	write(t, filepath.Join(current, "tls.crt"), []byte("junk"))
	check("with junk", second, 1, 1)
	check("with junk, again", second, 1, 1)
	write(t, filepath.Join(current, "tls.crt"), third.certPEM)
	check("with the certificate of another key", second, 1, 2)
	write(t, filepath.Join(current, "tls.key"), third.keyPEM)
	check("with its key, too", third, 2, 2)
	if err := os.Rename(filepath.Join(current, "tls.key"), filepath.Join(current, "gone")); err != nil {
		t.Fatal(err)
	}
	check("without the key", third, 2, 3)
	if err := os.Rename(filepath.Join(current, "gone"), filepath.Join(current, "tls.key")); err != nil {
		t.Fatal(err)
	}
	check("with the key again", third, 2, 3)
	if n := logs.FilterMessageSnippet("last good ones stay").Len(); n != 3 {
		t.Errorf("%d complaints in the log, want 3", n)
	}
	for _, entry := range logs.All() {
		if strings.Contains(entry.Message, "PRIVATE") {
			t.Errorf("the log shows %q", entry.Message)
		}
	}
}

func TestCertificateEnds(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	for name, test := range map[string]struct {
		left time.Duration
		want int
	}{"soon": {time.Hour, 1}, "ended": {-time.Minute, 1}, "not soon": {24 * 60 * time.Hour, 0}} {
		end := time.Now().Add(test.left)
		id := a.issue(t, "proxy.test", func(c *x509.Certificate) { c.NotAfter = end })
		core, logs := observer.New(zap.WarnLevel)
		p := start(t, echo(t), func(o *proxy.Options) {
			terminate(id)(o)
			o.Logger = zap.New(core)
		})
		shown(t, p)
		shown(t, p)
		if n := logs.FilterMessageSnippet("certificate expires").Len(); n != test.want {
			t.Errorf("%s: %d warnings, want %d", name, n, test.want)
		}
		if got := p.Stats().CertificateExpiry; got.Unix() != end.Unix() {
			t.Errorf("%s: expiry %v, want %v", name, got, end)
		}
	}
}

// scripted is an engine that answers SSLRequest with the given bytes and then waits for the end.
func scripted(t *testing.T, answer string) proxy.Address {
	return backend(t, func(conn net.Conn) {
		if got := readPacket(t, conn); len(got) != 8 || binary.BigEndian.Uint32(got[4:]) != sslCode {
			t.Errorf("the engine got %q, want an SSLRequest", got)
		}
		_, _ = io.WriteString(conn, answer)
		_, _ = io.Copy(io.Discard, conn)
	})
}

// TestUpstreamTLSFails: the session is refused, and never continues in plain text.
func TestUpstreamTLSFails(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		answer string
		mode   proxy.UpstreamTLSMode
	}{
		"none there":            {"N", proxy.UpstreamRequire},
		"data behind S":         {"Sx", proxy.UpstreamRequire}, // CVE-2021-23222
		"data behind N":         {"Nx", proxy.UpstreamPrefer},
		"no TLS behind S":       {"S", proxy.UpstreamPrefer},
		"an error":              {string(message('E', "SFATAL\x00C53300\x00Mtoo many\x00\x00")), proxy.UpstreamPrefer},
		"something else":        {"X", proxy.UpstreamPrefer},
		"the end of the stream": {"", proxy.UpstreamPrefer},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			limit := patience
			if test.answer == "S" || test.answer == "" { // and then silence
				limit = 200 * time.Millisecond
			}
			for ; ; limit *= 2 { // until it is long enough to reach TLS on a slow machine
				p := start(t, scripted(t, test.answer), func(o *proxy.Options) {
					o.UpstreamTLS.Mode = test.mode
					o.DialTimeout = limit
				})
				conn := p.dial(t)
				send(t, conn, hello())
				e := refusalOf(t, conn)
				if limit < patience && !strings.Contains(e.Message, "TLS") {
					continue
				}
				if e.Code != "08001" || !strings.Contains(e.Message, "TLS") {
					t.Errorf("refused with %s %q, want 08001 about TLS", e.Code, e.Message)
				}
				if n := p.Stats().RefusedUpstream; n != 1 {
					t.Errorf("counted %d", n)
				}
				break
			}
		})
	}
}

// TestUpstreamPrefer: without TLS at the engine the session is plain, on the same connection.
func TestUpstreamPrefer(t *testing.T) {
	t.Parallel()
	p := start(t, backend(t, func(conn net.Conn) {
		readPacket(t, conn)
		_, _ = io.WriteString(conn, "N")
		_, _ = io.Copy(conn, conn)
	}), func(o *proxy.Options) { o.UpstreamTLS.Mode = proxy.UpstreamPrefer })
	conn := p.dial(t)
	send(t, conn, hello())
	if got := readPacket(t, conn); !bytes.Equal(got, hello()) {
		t.Errorf("the engine got %q", got)
	}
	if err := p.CheckUpstream(t.Context()); err != nil {
		t.Errorf("CheckUpstream: %v", err)
	}
}

// TestPassthroughIsOpaque: bytes after the answer go through unchanged, TLS or not, and are not captured.
func TestPassthroughIsOpaque(t *testing.T) {
	t.Parallel()
	passing := func(o *proxy.Options) { o.ClientTLS.Mode = proxy.TLSPassthrough }
	query := append(hello(), message('Q', "SELECT 'unseen'\x00")...)
	t.Run("SSLRequest", func(t *testing.T) {
		t.Parallel()
		core, logs := observer.New(zap.WarnLevel)
		p := start(t, backend(t, func(conn net.Conn) {
			readPacket(t, conn)
			_, _ = io.WriteString(conn, "S")
			_, _ = io.Copy(conn, conn)
		}), func(o *proxy.Options) {
			passing(o)
			o.Logger = zap.New(core)
		})
		conn := p.dial(t)
		if answer := askTLS(t, conn); answer != 'S' {
			t.Fatalf("answer %q, want S", answer)
		}
		send(t, conn, query)
		if _, err := io.ReadFull(conn, make([]byte, len(query))); err != nil {
			t.Error(err)
		}
		if got := p.Stats(); got.UncapturedPassthrough != 1 || got.OpenSessions != 1 || got.QueriesCaptured != 0 {
			t.Errorf("stats %+v", got)
		}
		if logs.FilterMessageSnippet("NOT captured").Len() != 1 {
			t.Error("the log does not say that nothing is captured")
		}
	})
	t.Run("direct", func(t *testing.T) {
		t.Parallel()
		p := start(t, echo(t), passing)
		conn := p.dial(t)
		sent := append([]byte{0x16, 3, 1, 0, 5}, query...)
		send(t, conn, sent)
		got := make([]byte, len(sent))
		if _, err := io.ReadFull(conn, got); err != nil || !bytes.Equal(got, sent) {
			t.Errorf("got %q, %v", got, err)
		}
	})
	t.Run("the engine has none", func(t *testing.T) {
		t.Parallel()
		p := start(t, backend(t, func(conn net.Conn) {
			first := readPacket(t, conn)
			if len(first) == 8 {
				_, _ = io.WriteString(conn, "N")
				return
			}
			_, _ = conn.Write(first)
			_, _ = io.Copy(conn, conn)
		}), passing)
		conn := p.dial(t)
		if answer := askTLS(t, conn); answer != 'N' {
			t.Fatalf("answer %q, want N", answer)
		}
		send(t, conn, hello())
		if got := readPacket(t, conn); !bytes.Equal(got, hello()) {
			t.Errorf("the engine got %q", got)
		}
		if got := p.Stats(); got.UncapturedPassthrough != 0 || got.Sessions != 1 {
			t.Errorf("stats %+v", got)
		}
	})
	t.Run("data behind SSLRequest", func(t *testing.T) {
		t.Parallel()
		conn := start(t, echo(t), passing).dial(t)
		send(t, conn, packet(sslCode, ""), hello())
		if e := refusalOf(t, conn); e.Code != "08P01" {
			t.Errorf("SQLSTATE %s, want 08P01", e.Code)
		}
	})
	t.Run("the engine is away", func(t *testing.T) {
		t.Parallel()
		conn := start(t, proxy.Address{Network: "unix", Address: filepath.Join(t.TempDir(), "none")}, passing).dial(t)
		send(t, conn, packet(sslCode, ""))
		if e := refusalOf(t, conn); e.Code != "08001" {
			t.Errorf("SQLSTATE %s, want 08001", e.Code)
		}
	})
}

// TestCancelThroughTLS: libpq 17 and later encrypt cancel requests; keys can be long.
func TestCancelThroughTLS(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	id := a.issue(t, "proxy.test", nil)
	for _, length := range []int{4, 32, 256} {
		request := packet(cancel, "\x00\x00\x00\x01"+strings.Repeat("k", length))
		got := make(chan []byte, 1)
		p := start(t, backend(t, func(conn net.Conn) { got <- readPacket(t, conn) }), terminate(id))
		conn := p.dialTLS(t, trusting(a, "proxy.test"))
		send(t, conn, request)
		if rest, err := io.ReadAll(conn); err != nil || len(rest) > 0 {
			t.Errorf("answer %q, %v; want the end and nothing else", rest, err)
		}
		if !bytes.Equal(<-got, request) {
			t.Errorf("a key of %d bytes did not arrive", length)
		}
		plain := p.dial(t) // older clients send it without TLS, even where sessions require TLS
		send(t, plain, request)
		if rest, err := io.ReadAll(plain); err != nil || len(rest) > 0 {
			t.Errorf("answer %q, %v; want the end and nothing else", rest, err)
		}
		if !bytes.Equal(<-got, request) {
			t.Errorf("a key of %d bytes did not arrive without TLS", length)
		}
		if got := p.Stats(); got.CancelRequests != 2 || got.CancelFailures != 0 {
			t.Errorf("stats %+v", got)
		}
	}
}

func TestProxyProtocol(t *testing.T) {
	t.Parallel()
	v2 := func(command byte, body string) string {
		return "\r\n\r\n\x00\r\nQUIT\n" + string([]byte{command, 0x11, 0, byte(len(body))}) + body
	}
	address := "\xcb\x00\x71\x07\x7f\x00\x00\x01\x1f\x90\x15\x38" // 203.0.113.7:8080 -> 127.0.0.1:5432
	tests := []struct {
		name, header string
		networks     string
		peer         string // "" = refused
	}{
		{"version 1", "PROXY TCP4 203.0.113.7 127.0.0.1 8080 5432\r\n", "127.0.0.0/8", "203.0.113.7:8080"},
		{"version 1, IPv6", "PROXY TCP6 2001:db8::7 ::1 8080 5432\r\n", "127.0.0.0/8", "[2001:db8::7]:8080"},
		{"version 1, unknown", "PROXY UNKNOWN\r\n", "127.0.0.0/8", "127.0.0.1"},
		{"version 2", v2(0x21, address), "127.0.0.0/8", "203.0.113.7:8080"},
		{"version 2 with extensions", v2(0x21, address+"\xee\x00\x03abc"), "127.0.0.0/8", "203.0.113.7:8080"},
		{"version 2, of the balancer itself", v2(0x20, ""), "127.0.0.0/8", "127.0.0.1"},
		{"none where it is required", "", "127.0.0.0/8", ""},
		{"not of a trusted network", "PROXY TCP4 203.0.113.7 127.0.0.1 8080 5432\r\n", "10.0.0.0/8", "nobody"},
		{"no end", "PROXY TCP4 " + strings.Repeat("1", 200), "127.0.0.0/8", ""},
		{"not an address", "PROXY TCP4 nowhere 127.0.0.1 8080 5432\r\n", "127.0.0.0/8", ""},
		{"version 2, huge", "\r\n\r\n\x00\r\nQUIT\n\x21\x11\xff\xff", "127.0.0.0/8", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			core, logs := observer.New(zap.DebugLevel)
			p := start(t, echo(t), func(o *proxy.Options) {
				o.ProxyProtocol = []netip.Prefix{netip.MustParsePrefix(test.networks)}
				o.Logger = zap.New(core)
			})
			conn := p.dial(t)
			send(t, conn, []byte(test.header), hello())
			if test.peer == "nobody" { // the header is read as an invalid startup packet
				if got, _ := io.ReadAll(conn); len(got) > 0 {
					t.Errorf("answer %q, want none", got)
				}
				return
			}
			if test.peer == "" {
				if e := refusalOf(t, conn); e.Code != "08P01" {
					t.Errorf("SQLSTATE %s, want 08P01", e.Code)
				}
				return
			}
			if got := readPacket(t, conn); !bytes.Equal(got, hello()) {
				t.Errorf("the engine got %q", got)
			}
			startups := logs.FilterMessage("startup").All()
			if len(startups) != 1 || !strings.HasPrefix(startups[0].ContextMap()["client"].(string), test.peer) {
				t.Errorf("logged %v, want the client %s", startups, test.peer)
			}
		})
	}
}

func TestNewRefusesTLSOptions(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	id, other := a.issue(t, "proxy.test", nil), a.issue(t, "proxy.test", nil)
	tcp := proxy.Address{Network: "tcp", Address: "127.0.0.1:5432"}
	tests := []struct {
		name string
		o    proxy.Options
		want string
	}{
		{"unknown mode", proxy.Options{Upstream: tcp, ClientTLS: proxy.ClientTLS{Mode: "yes"}}, "passthrough"},
		{"unknown upstream mode", proxy.Options{Upstream: tcp, UpstreamTLS: proxy.UpstreamTLS{Mode: "allow"}}, "verify-full"},
		{"no certificate", proxy.Options{Upstream: tcp, ClientTLS: proxy.ClientTLS{Mode: proxy.TLSAllow}}, "certificate"},
		{"certificate for nothing", proxy.Options{Upstream: tcp, ClientTLS: proxy.ClientTLS{CertFile: id.certFile}}, "no certificate"},
		{
			"clients' CA without require",
			proxy.Options{Upstream: tcp, ClientTLS: proxy.ClientTLS{Mode: proxy.TLSAllow, CertFile: id.certFile, KeyFile: id.keyFile, ClientCAFile: a.file}},
			"require",
		},
		{"pass-through and TLS", proxy.Options{Upstream: tcp, ClientTLS: proxy.ClientTLS{Mode: proxy.TLSPassthrough}, UpstreamTLS: proxy.UpstreamTLS{Mode: proxy.UpstreamPrefer}}, "passed through"},
		{"TLS on a socket", proxy.Options{Upstream: proxy.Address{Network: "unix", Address: "/x"}, UpstreamTLS: proxy.UpstreamTLS{Mode: proxy.UpstreamRequire}}, "Unix"},
		{"a CA for nothing", proxy.Options{Upstream: tcp, UpstreamTLS: proxy.UpstreamTLS{Mode: proxy.UpstreamRequire, CAFile: a.file}}, "verify-ca"},
		{"verify-ca without", proxy.Options{Upstream: tcp, UpstreamTLS: proxy.UpstreamTLS{Mode: proxy.UpstreamVerifyCA}}, "needs a CA"},
		{"half a pair", proxy.Options{Upstream: tcp, UpstreamTLS: proxy.UpstreamTLS{Mode: proxy.UpstreamRequire, CertFile: id.certFile}}, "or neither"},
		{"a pair for nothing", proxy.Options{Upstream: tcp, UpstreamTLS: proxy.UpstreamTLS{CertFile: id.certFile, KeyFile: id.keyFile}}, "disable"},
		{"no such file", proxy.Options{Upstream: tcp, ClientTLS: proxy.ClientTLS{Mode: proxy.TLSAllow, CertFile: "/nonexistent", KeyFile: id.keyFile}}, "nonexistent"},
		{"another's key", proxy.Options{Upstream: tcp, ClientTLS: proxy.ClientTLS{Mode: proxy.TLSAllow, CertFile: id.certFile, KeyFile: other.keyFile}}, "private key"},
		{"a CA that is none", proxy.Options{Upstream: tcp, UpstreamTLS: proxy.UpstreamTLS{Mode: proxy.UpstreamVerifyCA, CAFile: id.keyFile}}, "no PEM certificate"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			_, err := proxy.New(test.o)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want it to say %q", err, test.want)
			}
		})
	}
}

// TestListeners: one server on several addresses of every kind, in front of an engine on IPv6.
func TestListeners(t *testing.T) {
	t.Parallel()
	six, err := net.Listen("tcp6", "[::1]:0")
	if err != nil {
		t.Skipf("no IPv6 here: %v", err)
	}
	defer six.Close()
	upstream, err := net.Listen("tcp6", "[::1]:0")
	if err != nil {
		t.Fatal(err)
	}
	var echoes sync.WaitGroup
	echoes.Go(func() {
		for {
			conn, err := upstream.Accept()
			if err != nil {
				return
			}
			echoes.Go(func() {
				defer conn.Close()
				_, _ = io.Copy(conn, conn)
			})
		}
	})
	four, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(t.TempDir(), "s")
	local, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	p, err := proxy.New(proxy.Options{Upstream: proxy.Address{Network: "tcp", Address: upstream.Addr().String()}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- p.Serve(ctx, six, four, local) }()
	for _, a := range []net.Addr{six.Addr(), four.Addr(), local.Addr()} {
		conn, err := net.Dial(a.Network(), a.String())
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.SetDeadline(time.Now().Add(patience))
		send(t, conn, hello())
		if got := readPacket(t, conn); !bytes.Equal(got, hello()) {
			t.Errorf("%v: got %q", a, got)
		}
		_ = conn.Close()
	}
	stop()
	if err := <-served; err != nil {
		t.Error(err)
	}
	_ = upstream.Close()
	echoes.Wait()
}
