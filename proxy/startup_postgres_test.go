package proxy_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dpwatch/dpwatch/proxy"
)

// startupCase is a sequence of packets before authentication. Every step but the last is answered with one byte.
type startupCase struct {
	name  string
	steps [][]byte
	half  bool // the client half-closes after the last step
	own   bool // the proxy writes the error itself, without the position in the server's source code
}

// startupCases returns packets that PostgreSQL refuses, closes on, or negotiates. Only 3.99 leads to an open session.
func startupCases() []startupCase {
	ssl, gss := packet(sslCode, ""), packet(gssCode, "")
	announce := func(length uint32, rest string) []byte {
		return append(binary.BigEndian.AppendUint32(nil, length), rest...)
	}
	one := func(name string, b []byte) startupCase { return startupCase{name: name, steps: [][]byte{b}} }
	own := func(name string, steps ...[]byte) startupCase {
		return startupCase{name: name, steps: steps, own: true}
	}
	half := func(name string, b []byte) startupCase {
		return startupCase{name: name, steps: [][]byte{b}, half: true}
	}
	return []startupCase{
		one("Terminate", []byte("X\x00\x00\x00\x04")),
		one("length 0", announce(0, "")),
		one("length 4", announce(4, "")),
		one("length 7", announce(7, "\x00\x03\x00")),
		half("length 10001, incomplete", announce(10001, "\x00\x03\x00\x00")),
		one("length 10004", packet(version30, "user\x00"+strings.Repeat("a", 9989)+"\x00\x00")),
		one("length 10005", announce(10005, "\x00\x03\x00\x00")),
		one("negative length", announce(1<<32-1, "")),
		one("HTTP", []byte("GET / HTTP/1.0\r\n\r\n")),
		half("nothing", nil),
		half("half a length", []byte{0, 0}),
		half("half a packet", hello()[:10]),
		own("SSLRequest twice", ssl, ssl),
		own("GSSENCRequest twice", gss, gss),
		own("SSLRequest twice, GSSENCRequest between", ssl, gss, ssl),
		own("GSSENCRequest twice, SSLRequest between", gss, ssl, gss),
		{name: "SSLRequest behind GSSENCRequest", steps: [][]byte{gss, ssl, nil}, half: true},
		{name: "long SSLRequest", steps: [][]byte{packet(sslCode, "x"), nil}, half: true},
		{name: "long GSSENCRequest", steps: [][]byte{packet(gssCode, "x"), nil}, half: true},
		{name: "invalid behind SSLRequest", steps: [][]byte{ssl, []byte("X\x00\x00\x00\x04")}},
		own("data behind SSLRequest", append(bytes.Clone(ssl), hello()...)),
		own("data behind GSSENCRequest", append(bytes.Clone(gss), 0)),
		one("cancel request without a key", packet(cancel, "")),
		one("cancel request, short", packet(cancel, "abc")),
		one("cancel request, odd", packet(cancel, "abcdefghijk")),
		one("cancel request, long", packet(cancel, strings.Repeat("a", 300))),
		one("odd list", packet(version30, "user\x00ann\x00database\x00")),
		one("list without an end", packet(version30, "user\x00ann")),
		one("empty list", packet(version30, "")),
		one("no user", packet(version30, "database\x00bank\x00\x00")),
		one("protocol 2.0", packet(2<<16, strings.Repeat("\x00", 288))),
		one("protocol 4.0", packet(4<<16, "user\x00ann\x00\x00")),
		one("protocol 0.0", packet(0, "")),
		one("an unknown request code", packet(gssCode+1, "")),
		{name: "protocol 3.99", steps: [][]byte{append(packet(3<<16|99, "user\x00ann\x00database\x00bank\x00\x00"), message('X', "")...)}},
	}
}

// run sends the case and returns the whole answer.
func (c startupCase) run(t *testing.T, conn net.Conn) string {
	t.Helper()
	var got []byte
	for i, step := range c.steps {
		send(t, conn, step)
		if i < len(c.steps)-1 {
			answer := make([]byte, 1)
			if _, err := io.ReadFull(conn, answer); err != nil {
				t.Fatalf("no answer to step %d: %v", i, err)
			}
			got = append(got, answer...)
		}
	}
	if c.half {
		if err := conn.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
			t.Fatal(err)
		}
	}
	rest, err := io.ReadAll(conn)
	if err != nil && !errors.Is(err, syscall.ECONNRESET) { // closing with unread bytes gives a reset, which is an end, too
		t.Fatalf("after %q: %v", rest, err)
	}
	return string(append(got, rest...))
}

var (
	sourcePlace = regexp.MustCompile(`\x00F[^\x00]*\x00L[^\x00]*\x00R[^\x00]*\x00`)
	latestMinor = regexp.MustCompile(`server supports 3\.0 to 3\.\d`)
)

// comparable removes the differences between two connections to one server and, from an error that the proxy writes
// itself, the position in the server's source, the server's latest minor version, and the message's length.
func (c startupCase) comparable(answer string) string {
	if before, key, found := strings.Cut(answer, "K\x00\x00\x00"); found { // BackendKeyData
		answer = before + "K" + key[int(key[0])-3:]
	}
	if !c.own {
		return answer
	}
	answer = sourcePlace.ReplaceAllString(answer, "\x00")
	answer = latestMinor.ReplaceAllString(answer, "server supports 3.0 to 3.x")
	before, fields, _ := strings.Cut(answer, "SFATAL")
	return before[:max(0, len(before)-4)] + "SFATAL" + fields
}

// TestStartupIsAnsweredLikePostgres: the answer to an invalid or unusual startup is the engine's, byte for byte, with
// event loops and with goroutines. The comparison uses the engine's Unix socket, which has neither TLS nor GSSAPI.
func TestStartupIsAnsweredLikePostgres(t *testing.T) {
	t.Parallel()
	for _, server := range []struct {
		name string
		need func(testing.TB) *cluster
	}{
		{"default", func(testing.TB) *cluster { return &postgres }},
		{"18", needs18},
	} {
		t.Run(server.name, func(t *testing.T) {
			t.Parallel()
			engine := server.need(t).socket(t)
			for name, loops := range map[string]int{"loops": 1, "goroutines": -1} {
				p := start(t, engine, func(o *proxy.Options) { o.Loops = loops })
				for _, c := range startupCases() {
					t.Run(name+"/"+c.name, func(t *testing.T) {
						t.Parallel()
						direct, err := net.Dial(engine.Network, engine.Address)
						if err != nil {
							t.Fatal(err)
						}
						defer direct.Close()
						want, got := c.comparable(c.run(t, direct)), c.comparable(c.run(t, p.dial(t)))
						if diff := cmp.Diff(want, got); diff != "" {
							t.Errorf("(-PostgreSQL +dpwatch)\n%s", diff)
						}
					})
				}
			}
		})
	}
}

// TestDisconnectBeforeStartup: node-postgres sends Terminate if its user disconnects before the startup. If an
// ErrorResponse comes then, it emits an error, which ends the program.
func TestDisconnectBeforeStartup(t *testing.T) {
	t.Parallel()
	p := start(t, echo(t), nil)
	conn := p.dial(t)
	send(t, conn, message('X', ""))
	if got, err := io.ReadAll(conn); err != nil || len(got) > 0 {
		t.Errorf("got %q, %v; want the end and nothing else", got, err)
	}
	if got := p.Stats(); got.RefusedProtocol != 1 {
		t.Errorf("stats %+v", got)
	}
}
