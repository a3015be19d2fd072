package proxy_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"testing"
	"time"

	"github.com/dpwatch/dpwatch/proxy"
)

// echoEngine is an engine that sends back everything it receives.
func echoEngine(t testing.TB) proxy.Address {
	return backend(t, func(conn net.Conn) { _, _ = io.Copy(conn, conn) })
}

// converse sends in chunks, half-closes the connection and reads to the end.
func converse(t testing.TB, addr string, in, cuts []byte) []byte {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	go func() {
		for i := 0; len(in) > 0; i++ {
			n := len(in)
			if len(cuts) > 0 {
				n = min(n, 1+int(cuts[i%len(cuts)]))
			}
			if _, err := conn.Write(in[:n]); err != nil {
				return
			}
			in = in[n:]
		}
		_ = conn.(*net.TCPConn).CloseWrite()
	}()
	out, _ := io.ReadAll(conn) // refusals sometimes end with a reset
	return out
}

// FuzzStartup: for any first bytes in any chunks, the proxy answers or closes, and keeps running.
func FuzzStartup(f *testing.F) {
	for _, seed := range [][]byte{
		nil, hello(), packet(sslCode, ""), bytes.Join([][]byte{packet(gssCode, ""), packet(sslCode, ""), hello()}, nil),
		append(packet(sslCode, ""), hello()...), packet(cancel, "\x00\x00\x00\x01\x00\x00\x00\x02"),
		packet(cancel, ""), packet(3<<16|2, "user\x00ann\x00_pq_.x\x001\x00\x00"), packet(2<<16, "old"),
		{0x16, 3, 1, 0, 5},
		{0, 0, 0, 0},
		{0, 0, 0, 7, 0, 3, 0},
		{0xff, 0xff, 0xff, 0xff, 0, 3, 0, 0},
		packet(version30, "user\x00ann"), packet(version30, "options\x00-c a=\\\x00\x00"), packet(version30, "replication\x00true\x00\x00"),
		append(hello(), message('Q', "SELECT 1\x00")...), []byte("GET / HTTP/1.1\r\n\r\n"), []byte("PROXY TCP4 1.2.3.4 1.2.3.4 1 2\r\n"),
	} {
		f.Add(seed, []byte{0})
		f.Add(seed, []byte{255})
	}
	p := start(f, echoEngine(f), func(o *proxy.Options) {
		o.StartupTimeout, o.DialTimeout = 50*time.Millisecond, 50*time.Millisecond // the engine does not close after a cancel request
	})
	f.Fuzz(func(t *testing.T, in, cuts []byte) {
		out := converse(t, p.addr, in, cuts)
		for len(in) >= 8 && len(out) > 0 && out[0] == 'N' { // an encryption request, possibly longer than necessary
			in, out = in[min(len(in), int(binary.BigEndian.Uint32(in))):], out[1:]
		}
		// Out is now a refusal, an alert, nothing, or the client's own bytes from the echo engine.
		if len(out) > 0 && out[0] != 'E' && out[0] != 0x15 && !bytes.HasPrefix(in, out) {
			t.Errorf("%q was answered with %q", in, out)
		}
		if n := p.Stats().UncapturedPanic; n != 0 {
			t.Errorf("%d panics", n)
		}
	})
}

// FuzzRelay: after the startup all bytes come through both ways, in any chunks, with wrong lengths too.
func FuzzRelayedSession(f *testing.F) {
	for _, seed := range [][]byte{
		nil, message('Q', "SELECT 1\x00"), greeting(), append(greeting(), message('Q', "BEGIN\x00")...),
		{'Q', 0, 0, 0, 0},
		{'Q', 0, 0, 0, 3},
		{'P', 0xff, 0xff, 0xff, 0xff, 1},
		{'d', 0x40, 0, 0, 4, 1, 2},
		{'?', 0, 0, 0, 4},
		bytes.Repeat(message('S', ""), 3000), message('B', "p\x00s\x00\xff\xff\xff\xff"), bytes.Repeat(message('E', "\x00\x00\x00\x00\x00"), 500),
		append(greeting(), bytes.Join([][]byte{message('P', "s\x00SELECT $1\x00\x00\x00"), message('1', ""), message('Z', "I")}, nil)...),
	} {
		f.Add(seed, []byte{0})
		f.Add(seed, []byte{200, 1, 7})
	}
	p := start(f, echoEngine(f), nil)
	f.Fuzz(func(t *testing.T, in, cuts []byte) {
		sent := append(hello(), in...)
		if got := converse(t, p.addr, sent, cuts); !bytes.Equal(got, sent) {
			t.Errorf("%d bytes sent, %d came back, or others", len(sent), len(got))
		}
		if n := p.Stats().UncapturedPanic; n != 0 {
			t.Errorf("%d panics", n)
		}
	})
}
