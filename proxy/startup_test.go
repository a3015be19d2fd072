package proxy_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgproto3/v2"

	"github.com/dpwatch/dpwatch/internal/eventually"
	"github.com/dpwatch/dpwatch/proxy"
)

// echo is an engine that repeats the startup packet and the rest of the stream.
func echo(t testing.TB) proxy.Address {
	return backend(t, func(conn net.Conn) {
		_, _ = io.Copy(conn, conn)
	})
}

// refusalOf reads the ErrorResponse and the end of the stream after it.
func refusalOf(t *testing.T, conn net.Conn) pgproto3.ErrorResponse {
	t.Helper()
	typ, body, err := readMessage(conn)
	if err != nil || typ != 'E' {
		t.Fatalf("got message %q, %v; want an ErrorResponse", typ, err)
	}
	var e pgproto3.ErrorResponse
	if err := e.Decode([]byte(body)); err != nil {
		t.Fatal(err)
	}
	if e.Severity != "FATAL" || e.SeverityUnlocalized != "FATAL" || e.Message == "" || e.Hint == "" && strings.HasPrefix(e.Message, "dpwatch") {
		t.Errorf("error response is not complete: %+v", e)
	}
	if rest, err := io.ReadAll(conn); err != nil || len(rest) > 0 {
		t.Errorf("behind the refusal: %q, %v; want the end", rest, err)
	}
	return e
}

// TestStartupIsForwarded: the startup packet arrives unchanged, whatever preceded it.
func TestStartupIsForwarded(t *testing.T) {
	t.Parallel()
	v32 := packet(3<<16|2, "user\x00ann\x00_pq_.something\x00x\x00\x00")
	tests := []struct {
		name    string
		before  []uint32 // encryption requests
		startup []byte
	}{
		{"plain", nil, hello()},
		{"after SSLRequest", []uint32{sslCode}, hello()},
		{"after GSSENCRequest", []uint32{gssCode}, hello()},
		{"after both", []uint32{sslCode, gssCode}, hello()},
		{"after both, the other way", []uint32{gssCode, sslCode}, hello()},
		{"protocol 3.2 with extensions", []uint32{sslCode}, v32},
		{"protocol 2.0", nil, packet(2<<16, strings.Repeat("\x00", 288))},
		{"no parameters", nil, packet(version30, "\x00")},
		{"86 bytes long", nil, packet(version30, "user\x00"+strings.Repeat("a", 71)+"\x00\x00")},
		{"as long as may be", nil, packet(version30, "user\x00"+strings.Repeat("a", 9989)+"\x00\x00")},
		{"messages right behind it", nil, append(hello(), message('Q', "SELECT 1\x00")...)},
		{"half a message behind it", nil, append(hello(), "Q\x00"...)},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			conn := start(t, echo(t), nil).dial(t)
			for _, code := range test.before {
				send(t, conn, packet(code, ""))
				answer := make([]byte, 1)
				if _, err := io.ReadFull(conn, answer); err != nil || answer[0] != 'N' {
					t.Fatalf("answer %q, %v; want N", answer, err)
				}
			}
			send(t, conn, test.startup)
			got := make([]byte, len(test.startup))
			if _, err := io.ReadFull(conn, got); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, test.startup) {
				t.Errorf("the engine got %q, want %q", got, test.startup)
			}
		})
	}
}

// TestInvalidStartup: an invalid startup packet ends the connection without an answer, as in PostgreSQL.
func TestInvalidStartup(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		in   []byte
		half bool
	}{
		{"length below eight", []byte("\x00\x00\x00\x07\x00\x03\x00"), false},
		{"length above the limit", []byte("\x00\x00\x27\x15\x00\x03\x00\x00"), false},
		{"length of gigabytes", []byte("\x7f\xff\xff\xff"), false},
		{"negative length", []byte("\xff\xff\xff\xff"), false},
		{"a request of the web", []byte("GET / HTTP/1.1\r\n\r\n"), false},
		{"incomplete", hello()[:10], true},
		{"too slow", hello()[:10], false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			p := start(t, echo(t), func(o *proxy.Options) {
				if test.name == "too slow" {
					o.StartupTimeout = 20 * time.Millisecond
				}
			})
			conn := p.dial(t)
			send(t, conn, test.in)
			if test.half {
				closeWrite(t, conn)
			}
			got, err := io.ReadAll(conn)
			late := test.name == "too slow" && errors.Is(err, syscall.ECONNRESET) // the connection was closed before the bytes arrived
			if err != nil && !late || len(got) > 0 {
				t.Errorf("got %q, %v; want the end and nothing else", got, err)
			}
			if got := p.Stats(); got.RefusedProtocol != 1 || got.Sessions != 0 {
				t.Errorf("stats %+v", got)
			}
		})
	}
}

func TestStartupIsRefused(t *testing.T) {
	t.Parallel()
	ssl, gss := packet(sslCode, ""), packet(gssCode, "")
	for _, test := range []struct {
		name    string
		steps   [][]byte // each but the last is answered with N
		answer  string   // before the refusal
		code    string
		message string
	}{
		{"data behind SSLRequest", [][]byte{append(bytes.Clone(ssl), hello()...)}, "N", "08P01", "received unencrypted data after SSL request"},
		{"one byte behind GSSENCRequest", [][]byte{append(bytes.Clone(gss), 0)}, "N", "08P01", "received unencrypted data after GSSAPI encryption request"},
		{"SSLRequest twice", [][]byte{ssl, ssl}, "", "0A000", "unsupported frontend protocol 1234.5679: server supports 3.0 to 3.2"},
		{"GSSENCRequest twice", [][]byte{gss, ssl, gss}, "", "0A000", "unsupported frontend protocol 1234.5680: server supports 3.0 to 3.2"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			p := start(t, echo(t), nil)
			conn := p.dial(t)
			for i, step := range test.steps {
				send(t, conn, step)
				want := test.answer
				if i < len(test.steps)-1 {
					want = "N"
				}
				answer := make([]byte, len(want))
				if _, err := io.ReadFull(conn, answer); err != nil || string(answer) != want {
					t.Fatalf("answer %q, %v; want %q", answer, err, want)
				}
			}
			if e := refusalOf(t, conn); e.Code != test.code || e.Message != test.message {
				t.Errorf("%s %q, want %s %q", e.Code, e.Message, test.code, test.message)
			}
			if got := p.Stats(); got.RefusedProtocol != 1 || got.Sessions != 0 {
				t.Errorf("stats %+v", got)
			}
		})
	}
}

func closeWrite(t *testing.T, conn net.Conn) {
	t.Helper()
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
}

func TestClosedBeforeStartup(t *testing.T) {
	t.Parallel()
	p := start(t, echo(t), nil)
	conn := p.dial(t)
	closeWrite(t, conn)
	if got, err := io.ReadAll(conn); err != nil || len(got) > 0 {
		t.Errorf("got %q, %v; want the end and nothing else", got, err)
	}
	if got := p.Stats(); got.RefusedProtocol != 0 || got.Connections != 1 {
		t.Errorf("stats %+v", got)
	}
}

func TestDirectTLS(t *testing.T) {
	t.Parallel()
	p := start(t, echo(t), nil)
	conn := p.dial(t)
	send(t, conn, []byte("\x16\x03\x01\x00\xf0\x01"))
	got, err := io.ReadAll(conn)
	if err != nil || len(got) != 7 || got[0] != 0x15 {
		t.Errorf("got % x, %v; want a TLS alert", got, err)
	}
	if n := p.Stats().DirectTLS; n != 1 {
		t.Errorf("counted %d", n)
	}
}

func TestTooManySessions(t *testing.T) {
	t.Parallel()
	p := start(t, echo(t), func(o *proxy.Options) { o.MaxSessions = 1 })
	first := p.dial(t)
	send(t, first, hello())
	readPacket(t, first)
	second := p.dial(t)
	send(t, second, hello())
	if e := refusalOf(t, second); e.Code != "53300" {
		t.Errorf("SQLSTATE %s, want 53300", e.Code)
	}
	_ = first.Close()
	eventually.True(t, "the session has ended", func() bool { return p.Stats().OpenSessions == 0 })
	third := p.dial(t)
	send(t, third, hello())
	readPacket(t, third)
	if got := p.Stats(); got.RefusedLimit != 1 || got.Sessions != 2 || got.OpenSessions != 1 {
		t.Errorf("stats %+v", got)
	}
}

func TestUpstreamUnreachable(t *testing.T) {
	t.Parallel()
	p := start(t, nobody, nil)
	conn := p.dial(t)
	send(t, conn, hello())
	if e := refusalOf(t, conn); e.Code != "08001" {
		t.Errorf("SQLSTATE %s, want 08001", e.Code)
	}
	if n := p.Stats().RefusedUpstream; n != 1 {
		t.Errorf("counted %d", n)
	}
}

func TestCancelRequest(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		in      []byte
		ssl     bool
		forward bool
	}{
		{"four byte key", packet(cancel, "\x00\x00\x00\x01\x00\x00\x00\x02"), false, true},
		{"behind SSLRequest", packet(cancel, "\x00\x00\x00\x01\x00\x00\x00\x02"), true, true},
		{"longest key", packet(cancel, "\x00\x00\x00\x01"+strings.Repeat("k", 256)), false, true},
		{"key too short", packet(cancel, "\x00\x00\x00\x01\x00\x00\x00"), false, false},
		{"key too long", packet(cancel, "\x00\x00\x00\x01"+strings.Repeat("k", 257)), false, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got := make(chan []byte, 1)
			p := start(t, backend(t, func(conn net.Conn) { got <- readPacket(t, conn) }), func(o *proxy.Options) { o.MaxSessions = 1 })
			conn := p.dial(t)
			if test.ssl {
				send(t, conn, packet(sslCode, ""))
				_, _ = io.ReadFull(conn, make([]byte, 1))
			}
			send(t, conn, test.in)
			if rest, err := io.ReadAll(conn); err != nil || len(rest) > 0 {
				t.Errorf("answer %q, %v; want the end and nothing else", rest, err)
			}
			stats := p.Stats()
			if stats.CancelRequests != 1 || (stats.CancelFailures == 0) != test.forward {
				t.Errorf("stats %+v", stats)
			}
			if test.forward {
				if diff := cmp.Diff(test.in, <-got); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

func TestNewRefusesOptions(t *testing.T) {
	t.Parallel()
	_, err := proxy.New(proxy.Options{Upstream: proxy.Address{Network: "udp"}, Capture: true, CaptureBudgetBytes: 1, MaxSessions: -1})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"udp", "address is empty", "sink", "budget", "max sessions"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q does not name %q", err, want)
		}
	}
}
