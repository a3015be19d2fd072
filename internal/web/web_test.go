package web_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/internal/web"
)

const token, other = "0123456789abcdef0123456789abcdef", "fedcba9876543210"

// served is a server under test that answers every request with its method and path.
type served struct {
	addr    string
	mu      sync.Mutex // guards refused
	refused map[string]int
}

func (s *served) count(reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused[reason]++
}

func serve(t *testing.T, network, address string, change func(*web.Options)) *served {
	t.Helper()
	s := &served{refused: map[string]int{}}
	o := web.Options{Logger: zap.NewNop(), Refused: s.count, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.ReadAll(r.Body); err != nil {
			w.WriteHeader(http.StatusRequestEntityTooLarge)
		}
		_, _ = io.WriteString(w, r.Method+" "+r.URL.Path)
	})}
	if change != nil {
		change(&o)
	}
	server, err := web.New(o)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	s.addr = l.Addr().String()
	done := make(chan error, 1)
	go func() { done <- server.Serve(l) }()
	t.Cleanup(func() {
		_ = server.Close()
		if err := <-done; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return s
}

// ask returns the status code of a request.
func ask(t *testing.T, client *http.Client, method, url string, header ...string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			req.Host = header[i+1]
			continue
		}
		req.Header.Set(header[i], header[i+1])
	}
	r, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	_, _ = io.Copy(io.Discard, r.Body)
	return r.StatusCode
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestHost(t *testing.T) {
	t.Parallel()
	loopback := serve(t, "tcp", "127.0.0.1:0", func(o *web.Options) { o.Hosts = []string{"Dpwatch.Internal", "10.9.9.9"} })
	exposed := serve(t, "tcp", "127.0.0.1:0", func(o *web.Options) { o.Exposed = true })
	for _, tc := range []struct {
		host              string
		loopback, exposed int
	}{
		{"127.0.0.1", 200, 200},
		{"127.0.0.1:1", 200, 200}, // a forwarded port
		{"127.9.9.9:9188", 200, 200},
		{"localhost:9188", 200, 200},
		{"LOCALHOST.", 200, 200},
		{"[::1]:9188", 200, 200},
		{"[::1]", 200, 200},
		{"dpwatch.internal:9188", 200, 403},
		{"dpwatch.internal.:9188", 200, 403},
		{"10.9.9.9:9188", 200, 200},
		{"10.1.2.3:9188", 403, 200}, // an IP address cannot be rebound
		{"[2001:db8::1]:9188", 403, 200},
		{"evil.example:9188", 403, 403},
		{"127.0.0.1.evil.example", 403, 403},
		{"localhost.evil.example:9188", 403, 403},
		{"0x7f000001", 403, 403},
		{"evil.example:127.0.0.1", 403, 403},
		{"[::1].evil.example", 403, 403},
	} {
		for s, want := range map[*served]int{loopback: tc.loopback, exposed: tc.exposed} {
			if got := ask(t, http.DefaultClient, http.MethodGet, "http://"+s.addr+"/api/status", "Host", tc.host); got != want {
				t.Errorf("Host %s (exposed %v): %d, want %d", tc.host, s == exposed, got, want)
			}
			if got := ask(t, http.DefaultClient, http.MethodGet, "http://"+s.addr+"/livez", "Host", tc.host); got != 200 {
				t.Errorf("Host %s: /livez %d", tc.host, got)
			}
		}
	}
	if loopback.refused["host"] == 0 {
		t.Error("no refused host is counted")
	}
}

// raw sends bytes and returns the first line of the answer.
func raw(t *testing.T, addr, text string) string {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	answer, _ := io.ReadAll(conn)
	line, _, _ := strings.Cut(string(answer), "\r\n")
	return line
}

// The host of an absolute request line takes precedence, a missing Host is refused, and paths that need cleaning do not
// pass as probes.
func TestRawRequests(t *testing.T) {
	t.Parallel()
	s := serve(t, "tcp", "127.0.0.1:0", func(o *web.Options) { o.TokenFile = tokenFile(t, token) })
	for request, want := range map[string]string{
		"GET http://evil.example/metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n": " 403 ",
		"GET /metrics HTTP/1.0\r\n\r\n":                                                                                                          " 403 ",
		"GET /livez HTTP/1.0\r\n\r\n":                                                                                                            " 200 ",
		"GET /livez/../api/status HTTP/1.0\r\nHost: localhost\r\n\r\n":                                                                           " 401 ",
		"GET /livez%2f..%2fapi HTTP/1.0\r\nHost: localhost\r\n\r\n":                                                                              " 401 ",
		"POST /livez HTTP/1.0\r\nHost: localhost\r\n\r\n":                                                                                        " 401 ",
		"CONNECT /livez HTTP/1.0\r\nHost: localhost\r\n\r\n":                                                                                     " 401 ",
		"OPTIONS * HTTP/1.0\r\nHost: localhost\r\n\r\n":                                                                                          " 401 ",
		"GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\nConnection: close\r\n\r\n":                                                   " 400 ",
		"GET /x HTTP/1.1\r\nHost: localhost\r\nX: " + strings.Repeat("a", 64<<10) + "\r\n\r\n":                                                   " 431 ",
		"GET /metrics HTTP/1.0\r\nHost: localhost\r\nAuthorization: Basic " + token + "\r\n\r\n":                                                 " 401 ",
		"GET /metrics HTTP/1.0\r\nHost: localhost\r\nAuthorization: Bearer " + token[:31] + "\r\n\r\n":                                           " 401 ",
		"GET /metrics HTTP/1.0\r\nHost: localhost\r\nAuthorization: Bearer\r\n\r\n":                                                              " 401 ",
		"GET /metrics HTTP/1.0\r\nHost: localhost\r\nAuthorization: bearer  " + token + "\r\n\r\n":                                               " 200 ",
		"POST /x HTTP/1.0\r\nHost: localhost\r\nAuthorization: Bearer " + token + "\r\nContent-Length: 9000\r\n\r\n" + strings.Repeat("x", 9000): " 413 ",
	} {
		if line := raw(t, s.addr, request); !strings.Contains(line+" ", want) {
			t.Errorf("%.80q: %q, want%s", request, line, want)
		}
	}
}

func tokenFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "token")
	write(t, path, text)
	return path
}

func TestToken(t *testing.T) {
	t.Parallel()
	path := tokenFile(t, "\n"+token+"\n")
	s := serve(t, "tcp", "127.0.0.1:0", func(o *web.Options) { o.TokenFile = path })
	get := func(s *served, path string, header ...string) int {
		return ask(t, http.DefaultClient, http.MethodGet, "http://"+s.addr+path, header...)
	}
	bearer := func(token string) []string { return []string{"Authorization", "Bearer " + token} }
	for path, want := range map[string]int{"/livez": 200, "/readyz": 200, "/metrics": 401, "/api/status": 401, "/": 401} {
		if got := get(s, path); got != want {
			t.Errorf("GET %s without a token: %d, want %d", path, got, want)
		}
		if got := get(s, path, bearer(token)...); got != 200 {
			t.Errorf("GET %s with the token: %d, want 200", path, got)
		}
	}
	if got := ask(t, http.DefaultClient, http.MethodPost, "http://"+s.addr+"/api/pause", bearer(token)...); got != 200 {
		t.Errorf("POST with the token: %d", got)
	}
	if got := ask(t, http.DefaultClient, http.MethodPost, "http://"+s.addr+"/api/pause", append(bearer(token), "Sec-Fetch-Site", "cross-site")...); got != 403 {
		t.Errorf("another site's POST with the token: %d", got)
	}

	write(t, path, other+"\n"+token) // both during a rotation
	for _, tok := range []string{token, other} {
		if got := get(s, "/metrics", bearer(tok)...); got != 200 {
			t.Errorf("one of two tokens: %d", got)
		}
	}
	write(t, path, other)
	if got := get(s, "/metrics", bearer(token)...); got != 401 {
		t.Errorf("the token that was replaced: %d", got)
	}
	write(t, path, "short")
	if got := get(s, "/metrics", bearer(other)...); got != 200 {
		t.Errorf("the last good token: %d", got)
	}
	if got := get(s, "/metrics", bearer("short")...); got != 401 {
		t.Errorf("a token that is too short: %d", got)
	}
}

func TestCheckTokenFile(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		token: "", "": "no token", "\n \n": "no token", "short\n": "line 1: the token has 5 characters",
		token + "\nab cd ef gh ij kl mn": "line 2: more than three words", "ÄÖÜäöüßÄÖÜäöüßÄÖÜ": "printable ASCII",
	} {
		err := web.CheckTokenFile(tokenFile(t, text))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	if web.CheckTokenFile("/nonexistent") == nil {
		t.Error("a missing file has no fault")
	}
}

func TestWithoutToken(t *testing.T) {
	t.Parallel()
	s := serve(t, "tcp", "127.0.0.1:0", nil)
	for method, want := range map[string]int{http.MethodGet: 200, http.MethodHead: 200, http.MethodPost: 403, http.MethodPut: 403, http.MethodDelete: 403} {
		if got := ask(t, http.DefaultClient, method, "http://"+s.addr+"/api/pause"); got != want {
			t.Errorf("%s: %d, want %d", method, got, want)
		}
	}
	dir, err := os.MkdirTemp("", "web")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	unix := serve(t, "unix", filepath.Join(dir, "s"), nil)
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", unix.addr)
	}}}
	defer client.CloseIdleConnections()
	if got := ask(t, client, http.MethodPost, "http://any.name/api/pause"); got != 200 {
		t.Errorf("POST through a Unix socket: %d", got)
	}
}

// pair writes a certificate with this serial number and its key.
func pair(t *testing.T, certFile, keyFile string, serial int64) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	write(t, certFile, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	write(t, keyFile, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})))
}

func TestTLS(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "c"), filepath.Join(dir, "k")
	pair(t, certFile, keyFile, 1)
	s := serve(t, "tcp", "127.0.0.1:0", func(o *web.Options) {
		o.CertFile, o.KeyFile, o.Exposed, o.TokenFile = certFile, keyFile, true, tokenFile(t, token)
	})
	serial := func() string {
		conn, err := tls.Dial("tcp", s.addr, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // the certificate is what is looked at
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		return conn.ConnectionState().PeerCertificates[0].SerialNumber.String()
	}
	if got := serial(); got != "1" {
		t.Errorf("certificate %s, want 1", got)
	}
	pair(t, certFile, keyFile, 2)
	if got := serial(); got != "2" {
		t.Errorf("certificate %s after it was replaced, want 2", got)
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // as above
	defer client.CloseIdleConnections()
	if got := ask(t, client, http.MethodGet, "https://"+s.addr+"/api/status", "Authorization", "Bearer "+token); got != 200 {
		t.Errorf("with TLS and token: %d", got)
	}
	if line := raw(t, s.addr, "GET /livez HTTP/1.0\r\n\r\n"); !strings.Contains(line, "400") {
		t.Errorf("plain HTTP: %q, want 400", line)
	}
	if _, err := tls.Dial("tcp", s.addr, &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS11}); err == nil { //nolint:gosec // as above
		t.Error("TLS 1.1 is accepted")
	}
}

// Clients that hold idle connections cannot block a probe: a new connection closes the oldest one.
func TestConnectionsAreBounded(t *testing.T) {
	t.Parallel()
	s := serve(t, "tcp", "127.0.0.1:0", nil)
	for range 300 {
		conn, err := net.Dial("tcp", s.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	if line := raw(t, s.addr, "GET /livez HTTP/1.0\r\n\r\n"); !strings.Contains(line, "200") {
		t.Errorf("a probe beside 300 silent clients: %q", line)
	}
}

// Requests beyond the limit are refused immediately; probes are not counted.
func TestRequestsAreBounded(t *testing.T) {
	t.Parallel()
	release, entered := make(chan struct{}), make(chan struct{}, 100)
	s := serve(t, "tcp", "127.0.0.1:0", func(o *web.Options) {
		o.Handler = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/metrics" {
				entered <- struct{}{}
				<-release
			}
		})
	})
	var clients sync.WaitGroup
	const limit = 16
	for range limit {
		clients.Go(func() { ask(t, http.DefaultClient, http.MethodGet, "http://"+s.addr+"/metrics") })
	}
	for range limit {
		<-entered
	}
	if got := ask(t, http.DefaultClient, http.MethodGet, "http://"+s.addr+"/metrics"); got != http.StatusServiceUnavailable {
		t.Errorf("one more: %d, want 503", got)
	}
	if got := ask(t, http.DefaultClient, http.MethodGet, "http://"+s.addr+"/livez"); got != 200 {
		t.Errorf("a probe: %d", got)
	}
	close(release)
	clients.Wait()
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]web.Options{
		"no token file": {TokenFile: "/nonexistent"}, "a short token": {TokenFile: tokenFile(t, "x")}, "no certificate": {CertFile: "/nonexistent", KeyFile: "/nonexistent"},
	} {
		o.Logger, o.Refused, o.Handler = zap.NewNop(), func(string) {}, http.NotFoundHandler()
		if _, err := web.New(o); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
