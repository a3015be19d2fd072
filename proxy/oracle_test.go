package proxy_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/dpwatch/dpwatch/internal/eventually"
	"github.com/dpwatch/dpwatch/proxy"
)

// line is a plain TCP forwarder that records the bytes of each connection. It does not parse the protocol.
type line struct {
	addr  string
	chunk int // longest write, 0 = unlimited

	mu          sync.Mutex // guards recordings
	recordings  []*recording
	connections sync.WaitGroup
}

// recording holds the bytes of one connection.
type recording struct {
	mu               sync.Mutex // guards the bytes
	toServer, toHere bytes.Buffer
}

// newLine starts a recording forwarder to the target; it stops with the test.
func newLine(t testing.TB, target proxy.Address, chunk int) *line {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &line{addr: listener.Addr().String(), chunk: chunk}
	l.connections.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			l.connections.Go(func() { l.forward(client, target) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		l.connections.Wait()
	})
	return l
}

func (l *line) forward(client net.Conn, target proxy.Address) {
	defer client.Close()
	server, err := net.Dial(target.Network, target.Address)
	if err != nil {
		return
	}
	defer server.Close()
	r := &recording{}
	l.mu.Lock()
	l.recordings = append(l.recordings, r)
	l.mu.Unlock()
	var back sync.WaitGroup
	back.Go(func() { l.copy(client, server, r, &r.toHere) })
	l.copy(server, client, r, &r.toServer)
	back.Wait()
}

// copy forwards until the source ends, and passes the end on.
func (l *line) copy(dst, src net.Conn, r *recording, record *bytes.Buffer) {
	b := make([]byte, 16<<10)
	for {
		n, err := src.Read(b)
		r.mu.Lock()
		record.Write(b[:n])
		r.mu.Unlock()
		for rest := b[:n]; len(rest) > 0; {
			k := len(rest)
			if l.chunk > 0 {
				k = min(k, l.chunk)
			}
			if _, err := dst.Write(rest[:k]); err != nil {
				_ = src.(*net.TCPConn).CloseRead()
				return
			}
			rest = rest[k:]
		}
		if err != nil {
			if half, ok := dst.(interface{ CloseWrite() error }); ok {
				_ = half.CloseWrite()
			}
			return
		}
	}
}

// streams returns the recordings as text, one for each connection, sorted. With answered, encryption requests and the
// bytes with which the proxy answered them are removed.
func (l *line) streams(t testing.TB, answered bool) []string {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []string
	for _, r := range l.recordings {
		r.mu.Lock()
		toServer, toHere := bytes.Clone(r.toServer.Bytes()), bytes.Clone(r.toHere.Bytes())
		r.mu.Unlock()
		for answered && len(toServer) >= 8 && binary.BigEndian.Uint32(toServer) == 8 {
			if code := binary.BigEndian.Uint32(toServer[4:]); code != sslCode && code != gssCode {
				break
			}
			toServer = toServer[8:]
			if len(toHere) == 0 || toHere[0] != 'N' {
				t.Errorf("a request for encryption was answered with %.20q", toHere)
				break
			}
			toHere = toHere[1:]
		}
		if len(toServer)+len(toHere) > 0 {
			out = append(out, fmt.Sprintf("%d bytes to the server:\n%s\n%d bytes to the client:\n%s", len(toServer), toServer, len(toHere), toHere))
		}
	}
	slices.Sort(out)
	return out
}

// observed is a proxy between two recording forwarders.
type observed struct {
	*running
	outer, inner *line
}

// observe starts client -> outer recorder -> proxy -> inner recorder -> engine. Chunk is the longest write of the
// recorders.
func observe(t testing.TB, upstream proxy.Address, chunk int, change func(*proxy.Options)) *observed {
	t.Helper()
	inner := newLine(t, upstream, chunk)
	p := start(t, proxy.Address{Network: "tcp", Address: inner.addr}, change)
	outer := newLine(t, proxy.Address{Network: "tcp", Address: p.addr}, chunk)
	return &observed{running: p, outer: outer, inner: inner}
}

// same checks that every byte came through, connection by connection, after all sessions have ended.
func (o *observed) same(t testing.TB) {
	t.Helper()
	eventually.True(t, "all sessions have ended", func() bool { return o.Stats().OpenSessions == 0 })
	var outer, inner []string
	for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		outer, inner = o.outer.streams(t, true), o.inner.streams(t, false)
		if slices.Equal(outer, inner) || t.Failed() || time.Now().After(end) {
			break
		}
	}
	if len(inner) == 0 {
		t.Error("nothing was recorded")
	}
	if len(outer) != len(inner) {
		t.Errorf("%d connections at the client's side, %d at the engine's", len(outer), len(inner))
		return
	}
	for i := range inner {
		if outer[i] == inner[i] {
			continue
		}
		at := 0
		for at < min(len(outer[i]), len(inner[i])) && outer[i][at] == inner[i][at] {
			at++
		}
		t.Errorf("a connection differs at byte %d of %d and %d:\n%.60q\n%.60q", at, len(outer[i]), len(inner[i]), outer[i][at:], inner[i][at:])
	}
}

// TestOracleSees: the recorders detect one changed byte, and one missing byte.
func TestOracleSees(t *testing.T) {
	t.Parallel()
	engine := backend(t, func(conn net.Conn) {
		readPacket(t, conn)
		send(t, conn, greeting())
		_, _ = io.Copy(io.Discard, conn)
	})
	o := observe(t, engine, 1, nil)
	conn := dial(t, o.outer.addr)
	send(t, conn, packet(sslCode, ""))
	_, _ = io.ReadFull(conn, make([]byte, 1))
	send(t, conn, hello())
	until(t, conn, 'Z')
	_ = conn.Close()
	o.same(t)
	for _, spoil := range []func(r *recording){
		func(r *recording) { r.toHere.Bytes()[3] ^= 1 },
		func(r *recording) { r.toServer.Truncate(r.toServer.Len() - 1) },
	} {
		spoil(o.inner.recordings[0])
		if slices.Equal(o.outer.streams(t, true), o.inner.streams(t, false)) {
			t.Error("a difference was not noticed")
		}
	}
}
