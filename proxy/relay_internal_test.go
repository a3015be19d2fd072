package proxy

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/proxy/internal/tracker"
)

// wire is a connection whose reads return prepared chunks, repeatedly if loop is set, and whose writes are kept unless loop
// is set.
type wire struct {
	net.Conn
	chunks  [][]byte
	next    int
	loop    bool
	written bytes.Buffer
}

func (w *wire) Read(b []byte) (int, error) {
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

func (w *wire) Write(b []byte) (int, error) {
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

// newTapped returns the capture state of a session without a drainer.
func newTapped(budget int) *tapped {
	o := Options{Capture: true, Sink: discard{}, CaptureBudgetBytes: budget, DrainInterval: time.Hour}.withDefaults()
	return newDrainer(&o).open(1, tracker.Startup{Version: 3 << 16}, &o)
}

// records returns the records in a tap, including partial ones.
func (t *tap) records() []byte {
	if t.buf == nil {
		return nil
	}
	return t.buf.b
}

// FuzzRelay: any bytes in any chunks come out unchanged in both directions, and the tap's records do not depend on the
// chunking.
func FuzzRelay(f *testing.F) {
	session := join(typed('Q', "SELECT 1\x00"), typed('P', "\x00SELECT $1\x00\x00\x00"), typed('d', strings.Repeat("x", 300)), typed('S', ""))
	f.Add(session, []byte{1, 4, 5, 9, 200})
	f.Add(join(typed('T', "\x00\x00"), typed('D', "\x00\x00"), typed('Z', "I")), []byte{})
	f.Add([]byte("Q\x00\x00\x00\x03"), []byte{2})
	f.Add([]byte("Q\x7f\xff\xff\xffabc"), []byte{3, 3})
	f.Add([]byte("!!!!!!!!"), []byte{1, 1, 1, 1})
	f.Fuzz(func(t *testing.T, stream, cuts []byte) {
		relay := func(chunks [][]byte, toServer bool) ([]byte, []byte) {
			side := newTapped(16 << 10)
			client, server := newWalkers(side)
			w, tapOf := server, &side.server
			if toServer {
				w, tapOf = client, &side.client
			}
			w.stamps = false // times differ
			in, out := &wire{chunks: chunks}, &wire{}
			p := &pump{src: in, dst: out, session: side, walker: w}
			if err := p.run(nil, &chunkPool{}); err != nil {
				t.Fatal(err)
			}
			return out.written.Bytes(), tapOf.records()
		}
		for _, toServer := range []bool{true, false} {
			out, whole := relay([][]byte{stream}, toServer)
			if !bytes.Equal(out, stream) {
				t.Fatal("in one chunk: bytes out are not bytes in")
			}
			out, pieces := relay(cutUp(stream, cuts), toServer)
			if !bytes.Equal(out, stream) {
				t.Fatal("in pieces: bytes out are not bytes in")
			}
			if !bytes.Equal(whole, pieces) {
				t.Fatalf("records differ:\n%q\n%q", whole, pieces)
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

// TestTakeMovesPartialRecord: the drainer takes whole records while a body is still incomplete.
func TestTakeMovesPartialRecord(t *testing.T) {
	t.Parallel()
	side := newTapped(16 << 10)
	client, _ := newWalkers(side)
	stream := join(typed('S', ""), typed('Q', "SELECT 1\x00"), typed('S', ""))
	var got []byte
	for i := range stream {
		client.walk(stream[i : i+1])
		if b := side.client.take(); b != nil {
			got = append(got, b.b...)
			side.client.pool.give(b)
		}
	}
	want := tracker.AppendHeader(nil, 'S', 0)
	want = append(tracker.AppendHeader(want, 'Q', 9), "SELECT 1\x00"...)
	want = tracker.AppendHeader(want, 'S', 0)
	if !bytes.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

// TestTapIsBounded: without a drainer, bodies are left out first, then a gap begins; memory stays below the budget. The gap
// ends when the session is idle.
func TestTapIsBounded(t *testing.T) {
	t.Parallel()
	const budget = 8 << 10
	side := newTapped(budget)
	client, server := newWalkers(side)
	ready := join(typed('C', "SELECT 1\x00"), typed('Z', "I"))
	server.walk(typed('Z', "I")) // the end of the startup
	query := typed('Q', "SELECT '"+strings.Repeat("x", 500)+"'\x00")
	cut, sent := 0, 0
	for ; !side.client.lost; sent++ {
		if sent > budget {
			t.Fatal("the tap took more messages than fit")
		}
		before := len(side.client.records())
		client.walk(query)
		if grown := len(side.client.records()) - before; grown > 0 && grown < len(query) {
			cut++
		}
		if size := len(side.client.records()); size > budget {
			t.Fatalf("%d bytes in the tap, the budget is %d", size, budget)
		}
	}
	if side.stopped.Load() || cut == 0 {
		t.Errorf("stopped %v with %d messages cut; want a gap, and some", side.stopped.Load(), cut)
	}
	client.walk(query[:300])
	for _, tap := range []*tap{&side.client, &side.server} {
		tap.pool.give(tap.take())
	}
	report := typed('S', "client_encoding\x00UTF8\x00")
	for i := range report {
		server.walk(report[i : i+1])
	}
	for range sent {
		server.walk(ready)
	}
	if !side.client.lost {
		t.Error("the gap ended within a message of the client")
	}
	client.walk(query[300:])
	server.walk(ready[:len(ready)-1])
	if !side.client.lost || len(side.client.records()) > 0 {
		t.Error("the gap ended within a message of the server, or the client's was recorded")
	}
	want := append(tracker.AppendHeader(nil, 'S', len(report)-headerLen), report[headerLen:]...)
	if b := side.server.records(); !bytes.Equal(b, want) {
		t.Errorf("recorded within the gap: %q; want the report alone", b)
	}
	server.walk(ready[len(ready)-1:])
	if side.client.lost || side.server.lost {
		t.Fatal("the gap goes on while nothing is under way")
	}
	client.walk(query)
	if n := len(side.client.records()); n != len(query)-headerLen+tracker.HeaderLen {
		t.Errorf("%d bytes recorded behind the gap", n)
	}
	if n := side.missed.Load(); n != uint64(sent)+1 {
		t.Errorf("%d statements were missed, want %d", n, sent+1)
	}
}

// TestGapTakesAReport: a gap that begins inside a ParameterStatus removes its record. Its content is unknown, so capture
// stops.
func TestGapTakesAReport(t *testing.T) {
	t.Parallel()
	side := newTapped(8 << 10)
	_, server := newWalkers(side)
	report := typed('S', "client_encoding\x00UTF8\x00")
	server.walk(report[:10])
	side.lose()
	server.walk(report[10:])
	if off := tracker.Off(side.off.Load()); !side.stopped.Load() || off != tracker.OffOverflow {
		t.Errorf("stopped %v for %d, want an overflow", side.stopped.Load(), off)
	}
}

// loops returns a session's two directions with endless traffic of a prepared statement.
func loops(side *tapped) (toServer, toClient *pump) {
	client, server := newWalkers(side)
	question := join(typed('B', "\x00s\x00\x00\x00\x00\x01\x00\x00\x00\x044711\x00\x00"), typed('E', "\x00\x00\x00\x00\x00"), typed('S', ""))
	answer := join(typed('2', ""), typed('D', "\x00\x01\x00\x00\x00\x011"), typed('C', "SELECT 1\x00"), typed('Z', "I"))
	return &pump{src: &endless{question}, dst: &wire{loop: true}, session: side, walker: client},
		&pump{src: &endless{answer}, dst: &wire{loop: true}, session: side, walker: server}
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
			for _, tap := range []*tap{&side.client, &side.server} {
				tap.pool.give(tap.take())
			}
			side.drainer.list = side.drainer.list[:0]
			side.queued.Store(false)
		}
	}
	for range 200 {
		relay()
	}
	if allocs := testing.AllocsPerRun(2000, relay); allocs > 0 && !raceEnabled {
		t.Errorf("%v allocations for a question and its answer", allocs)
	}
	if side.stopped.Load() {
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
				side.client.pool.give(side.client.take())
				side.server.pool.give(side.server.take())
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

func BenchmarkWalk(b *testing.B) {
	side := newTapped(256 << 10)
	_, server := newWalkers(side)
	row := typed('D', "\x00\x02\x00\x00\x00\x041234\x00\x00\x00\x051.234")
	chunk := bytes.Repeat(row, chunkBytes/len(row))
	b.SetBytes(int64(len(chunk)))
	b.ReportAllocs()
	for b.Loop() {
		server.walk(chunk)
	}
}

// TestRelayContainsPanic: a panic in either direction ends that session, not the process.
func TestRelayContainsPanic(t *testing.T) {
	for _, direction := range []string{"to the server", "to the client"} {
		t.Run(direction, func(t *testing.T) {
			nearClient, client := net.Pipe()
			nearServer, server := net.Pipe()
			s := newSession(1, nearClient, nearServer, newTapped(1<<20))
			s.capture = nil
			s.toServer.session, s.toClient.session = nil, nil // makes seen panic outside the walker's own recover
			result := make(chan error, 1)
			go func() { result <- s.run(nil, &chunkPool{}) }()
			from, to := client, server
			if direction == "to the client" {
				from, to = server, client
			}
			go func() { _, _ = io.Copy(io.Discard, to) }()
			if _, err := from.Write([]byte("x")); err != nil {
				t.Fatal(err)
			}
			var fault *panicError
			if err := <-result; !errors.As(err, &fault) || !bytes.Contains(fault.stack, []byte("seen")) {
				t.Errorf("the session ended with %v", err)
			}
			_, _ = client.Close(), server.Close()
		})
	}
}
