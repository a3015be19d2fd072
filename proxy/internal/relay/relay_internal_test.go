package relay

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/proxy/internal/tap"
	"github.com/dpwatch/dpwatch/proxy/internal/tracker"
)

// wired is a connection whose reads return prepared chunks, repeatedly if loop is set, and whose writes are kept unless
// loop is set.
type wired struct {
	net.Conn
	chunks  [][]byte
	next    int
	loop    bool
	written bytes.Buffer
}

func (w *wired) Read(b []byte) (int, error) {
	if w.next == len(w.chunks) {
		if !w.loop {
			return 0, io.EOF
		}
		w.next = 0
	}
	n := copy(b, w.chunks[w.next])
	w.chunks[w.next] = w.chunks[w.next][n:]
	if len(w.chunks[w.next]) == 0 {
		w.next++
	}
	return n, nil
}

func (w *wired) Write(b []byte) (int, error) {
	if w.loop {
		return len(b), nil
	}
	return w.written.Write(b)
}

func typed(typ byte, body string) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{typ}, uint32(len(body)+4)), body...)
}

type discard struct{}

func (discard) Offer(capture.Query) bool { return true }

// newTapped returns the capture state of a session whose drainer does not run.
func newTapped(budget int) *tap.Session {
	o := tap.Options{Sink: discard{}, BudgetBytes: budget, MaxStatementBytes: 16 << 10, Interval: time.Hour, Logger: zap.NewNop()}
	return tap.NewDrainer(o).Open(1, tracker.Startup{Version: 3 << 16})
}

// FuzzRelay: any bytes in any chunks come out unchanged in both directions.
func FuzzRelay(f *testing.F) {
	session := join(typed('Q', "SELECT 1\x00"), typed('P', "\x00SELECT $1\x00\x00\x00"), typed('d', strings.Repeat("x", 300)), typed('S', ""))
	f.Add(session, []byte{1, 4, 5, 9, 200})
	f.Add(join(typed('T', "\x00\x00"), typed('D', "\x00\x00"), typed('Z', "I")), []byte{})
	f.Add([]byte("Q\x00\x00\x00\x03"), []byte{2})
	f.Add([]byte("Q\x7f\xff\xff\xffabc"), []byte{3, 3})
	f.Add([]byte("!!!!!!!!"), []byte{1, 1, 1, 1})
	f.Fuzz(func(t *testing.T, stream, cuts []byte) {
		relay := func(chunks [][]byte, toServer bool) []byte {
			client, server := newTapped(16 << 10).Walkers()
			w := server
			if toServer {
				w = client
			}
			in, out := &wired{chunks: chunks}, &wired{}
			p := &pump{src: in, dst: out, walker: w}
			if err := p.run(nil, &chunkPool{}); err != nil {
				t.Fatal(err)
			}
			return out.written.Bytes()
		}
		for _, toServer := range []bool{true, false} {
			if !bytes.Equal(relay([][]byte{stream}, toServer), stream) {
				t.Fatal("in one chunk: bytes out are not bytes in")
			}
			if !bytes.Equal(relay(cutUp(stream, cuts), toServer), stream) {
				t.Fatal("in pieces: bytes out are not bytes in")
			}
		}
	})
}

func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

// cutUp cuts b into pieces of the given lengths; the last piece is the rest.
func cutUp(b, lengths []byte) [][]byte {
	var out [][]byte
	for _, n := range lengths {
		k := min(int(n)+1, len(b))
		if k == 0 {
			break
		}
		out = append(out, b[:k])
		b = b[k:]
	}
	if len(b) > 0 {
		out = append(out, b)
	}
	return out
}

// loops returns a session's two directions with endless traffic of a prepared statement.
func loops(side *tap.Session) (toServer, toClient *pump) {
	client, server := side.Walkers()
	question := join(typed('B', "\x00s\x00\x00\x00\x00\x01\x00\x00\x00\x044711\x00\x00"), typed('E', "\x00\x00\x00\x00\x00"), typed('S', ""))
	answer := join(typed('2', ""), typed('D', "\x00\x01\x00\x00\x00\x011"), typed('C', "SELECT 1\x00"), typed('Z', "I"))
	return &pump{src: &endless{question}, dst: &wired{loop: true}, walker: client},
		&pump{src: &endless{answer}, dst: &wired{loop: true}, walker: server}
}

// endless returns the same chunk forever.
type endless struct{ chunk []byte }

func (e *endless) Read(b []byte) (int, error)         { return copy(b, e.chunk), nil }
func (e *endless) Write(b []byte) (int, error)        { return len(b), nil }
func (e *endless) Close() error                       { return nil }
func (e *endless) LocalAddr() net.Addr                { return nil }
func (e *endless) RemoteAddr() net.Addr               { return nil }
func (e *endless) SetDeadline(time.Time) error        { return nil }
func (e *endless) SetReadDeadline(time.Time) error    { return nil }
func (e *endless) SetWriteDeadline(t time.Time) error { return nil }

// TestRelayAllocatesNothing: in the steady state, relaying and tapping allocate no memory, drained or not.
func TestRelayAllocatesNothing(t *testing.T) {
	side := newTapped(256 << 10)
	toServer, toClient := loops(side)
	chunks := &chunkPool{}
	fromClient, fromServer := newSource(toServer.src, chunks), newSource(toClient.src, chunks)
	n := 0
	relay := func() {
		_, err1 := toServer.step(fromClient)
		_, err2 := toClient.step(fromServer)
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		if n++; n%50 == 0 { // as a drainer does between messages, without the tracker
			side.Release()
		}
	}
	for range 200 {
		relay()
	}
	if allocs := testing.AllocsPerRun(2000, relay); allocs > 0 && !raceEnabled {
		t.Errorf("%v allocations for a question and its answer", allocs)
	}
	if side.Stopped() {
		t.Error("the capture stopped")
	}
}

// TestSourceAllocatesNothing: reading from a socket allocates nothing, and a session holds no buffer while it waits.
func TestSourceAllocatesNothing(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	peer, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer peer.Close()
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	p := &pump{src: conn, dst: &endless{}}
	src := newSource(conn, &chunkPool{})
	message := typed('S', "")
	relay := func() {
		if _, err := peer.Write(message); err != nil {
			t.Fatal(err)
		}
		if _, err := p.step(src); err != nil {
			t.Fatal(err)
		}
	}
	relay()
	if allocs := testing.AllocsPerRun(500, relay); allocs > 0 && !raceEnabled {
		t.Errorf("%v allocations for a chunk", allocs)
	}
}

func BenchmarkRelay(b *testing.B) {
	b.Run("capture", func(b *testing.B) {
		side := newTapped(256 << 10)
		toServer, toClient := loops(side)
		chunks := &chunkPool{}
		fromClient, fromServer := newSource(toServer.src, chunks), newSource(toClient.src, chunks)
		b.ReportAllocs()
		n := 0
		for b.Loop() {
			_, _ = toServer.step(fromClient)
			_, _ = toClient.step(fromServer)
			if n++; n%200 == 0 {
				side.Release()
			}
		}
	})
	b.Run("plain", func(b *testing.B) {
		toServer, toClient := loops(newTapped(256 << 10))
		toServer.walker, toClient.walker = nil, nil
		chunks := &chunkPool{}
		fromClient, fromServer := newSource(toServer.src, chunks), newSource(toClient.src, chunks)
		b.ReportAllocs()
		for b.Loop() {
			_, _ = toServer.step(fromClient)
			_, _ = toClient.step(fromServer)
		}
	})
}

// TestRelayContainsPanic: a panic in either direction ends that session, not the process.
func TestRelayContainsPanic(t *testing.T) {
	for _, direction := range []string{"to the server", "to the client"} {
		t.Run(direction, func(t *testing.T) {
			nearClient, client := net.Pipe()
			nearServer, server := net.Pipe()
			s := NewSession(1, nearClient, nearServer, nil)
			s.toServer.walker, s.toClient.walker = new(tap.Walker), new(tap.Walker) // panics outside its own recover
			result := make(chan error, 1)
			go func() { result <- (&Relay{}).Run(s, nil) }()
			from, to := client, server
			if direction == "to the client" {
				from, to = server, client
			}
			go func() { _, _ = io.Copy(io.Discard, to) }()
			if _, err := from.Write([]byte("x")); err != nil {
				t.Fatal(err)
			}
			var fault *PanicError
			if err := <-result; !errors.As(err, &fault) || !bytes.Contains(fault.Stack, []byte("forward")) {
				t.Errorf("the session ended with %v", err)
			}
			_, _ = client.Close(), server.Close()
		})
	}
}
