package relay

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/proxy/internal/tap"
)

// hang is the time limit after which a waiting peer fails the test.
const hang = 5 * time.Minute

// tcpPair returns both ends of a TCP connection.
func tcpPair(t testing.TB) (near, far net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if far, err = net.Dial("tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if near, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	_ = far.SetDeadline(time.Now().Add(hang))
	t.Cleanup(func() {
		_ = near.Close()
		_ = far.Close()
	})
	return near, far
}

// onLoop is a session on a loop, with the ends of its two peers.
type onLoop struct {
	*Session
	relay          *Relay
	client, server net.Conn // the peers' ends
	result         chan error
}

func newOnLoop(t testing.TB, ls *loopSet, capture *tap.Session) *onLoop {
	t.Helper()
	o := &onLoop{result: make(chan error, 1)}
	nearClient, client := tcpPair(t)
	nearServer, server := tcpPair(t)
	o.client, o.server = client, server
	o.Session = NewSession(1, nearClient, nearServer, capture)
	o.relay = &Relay{loops: ls}
	return o
}

func (o *onLoop) start() *onLoop {
	go func() { o.result <- o.relay.Run(o.Session, nil) }()
	return o
}

func startLoops(t testing.TB, n int) *loopSet {
	t.Helper()
	ls, err := newLoops(n, &chunkPool{}, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(ls.stop)
	return ls
}

// pass sends b from one end to the other and reads it into buf.
func pass(t testing.TB, from, to net.Conn, b, buf []byte) {
	if _, err := from.Write(b); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(to, buf[:len(b)]); err != nil {
		t.Fatal(err)
	}
}

// TestLoopAllocatesNothing: relaying and tapping a query and its answer on a loop allocates no memory.
func TestLoopAllocatesNothing(t *testing.T) {
	side := newTapped(1 << 20)
	o := newOnLoop(t, startLoops(t, 1), side).start()
	question := join(typed('B', "\x00s\x00\x00\x00\x00\x01\x00\x00\x00\x044711\x00\x00"), typed('E', "\x00\x00\x00\x00\x00"), typed('S', ""))
	answer := join(typed('2', ""), typed('D', "\x00\x01\x00\x00\x00\x011"), typed('C', "SELECT 1\x00"), typed('Z', "I"))
	buf := make([]byte, 1024)
	n := 0
	relay := func() {
		pass(t, o.client, o.server, question, buf)
		pass(t, o.server, o.client, answer, buf)
		if n++; n%50 == 0 {
			side.Release()
		}
	}
	for range 200 {
		relay()
	}
	if allocs := testing.AllocsPerRun(500, relay); allocs > 0 && !raceEnabled {
		t.Errorf("%v allocations for a question and its answer", allocs)
	}
	if side.Stopped() {
		t.Error("the capture stopped")
	}
	_ = o.client.Close()
	_ = o.server.Close()
	<-o.result
}

// TestLoopHoldsBack: a side that does not read blocks the other after bounded memory, in both directions at once, and
// no byte is lost when it reads again.
func TestLoopHoldsBack(t *testing.T) {
	o := newOnLoop(t, startLoops(t, 1), nil).start()
	const size = 24 << 20
	sent := bytes.Repeat([]byte("0123456789abcdefghijklmnopqrstuvwxyz-"), size/37)
	var wg sync.WaitGroup
	write := func(c net.Conn) {
		wg.Go(func() {
			if _, err := c.Write(sent); err != nil {
				t.Error(err)
			}
			_ = c.(*net.TCPConn).CloseWrite()
		})
	}
	write(o.client)
	write(o.server)
	// Read nothing until both directions are blocked.
	for last := [2]uint64{1, 1}; ; {
		now := [2]uint64{o.toServer.bytes.Load(), o.toClient.bytes.Load()}
		if now == last && now[0] > 0 && now[1] > 0 {
			break
		}
		last = now
		time.Sleep(50 * time.Millisecond)
	}
	if n := o.toServer.bytes.Load(); n >= uint64(len(sent)) {
		t.Errorf("%d bytes were taken from the client, none was read by the server", n)
	}
	for _, c := range []net.Conn{o.client, o.server} {
		wg.Go(func() {
			got, err := io.ReadAll(c)
			if err != nil || !bytes.Equal(got, sent) {
				t.Errorf("%d bytes arrived, %v; want the %d that were sent", len(got), err, len(sent))
			}
		})
	}
	wg.Wait()
	if err := <-o.result; err != nil {
		t.Error(err)
	}
}

// TestLoopContainsPanic: a panic ends the session being handled, not the others and not the process.
func TestLoopContainsPanic(t *testing.T) {
	ls := startLoops(t, 1)
	good := newOnLoop(t, ls, nil).start()
	bad := newOnLoop(t, ls, nil)
	bad.toServer.walker = new(tap.Walker) // panics outside its own recover
	bad.start()
	buf := make([]byte, 64)
	pass(t, good.client, good.server, []byte("before"), buf)
	if _, err := bad.client.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if err := <-bad.result; !errors.Is(err, errLoopPanic) {
		t.Errorf("the session ended with %v", err)
	}
	pass(t, good.client, good.server, []byte("after"), buf)
	good.Close()
	if err := <-good.result; !errors.Is(err, net.ErrClosed) {
		t.Errorf("closed by force: %v", err)
	}
}

// TestLoopLingers: after the server has closed, the client can still send, and its bytes arrive; the wait for it is
// bounded.
func TestLoopLingers(t *testing.T) {
	gone := func(linger time.Duration) (*onLoop, []byte) {
		ls := startLoops(t, 1)
		ls.all[0].linger = linger
		o := newOnLoop(t, ls, nil).start()
		_ = o.server.(*net.TCPConn).CloseWrite()
		buf := make([]byte, 64)
		if _, err := o.client.Read(buf); !errors.Is(err, io.EOF) {
			t.Fatalf("the client reads %v, want the end", err)
		}
		return o, buf
	}
	o, buf := gone(time.Hour)
	pass(t, o.client, o.server, []byte("still here"), buf)
	_ = o.client.Close()
	if err := <-o.result; err != nil {
		t.Errorf("ended with %v", err)
	}
	o, buf = gone(time.Millisecond)
	if _, err := o.server.Read(buf); !errors.Is(err, io.EOF) && err == nil {
		t.Errorf("the server reads %v, want the end", err)
	}
	if err := <-o.result; err != nil {
		t.Errorf("ended with %v", err)
	}
}

// TestLoopClosesDescriptors: sessions that start, end, break and are killed concurrently leave no descriptor open, and
// no session gets another's bytes.
func TestLoopClosesDescriptors(t *testing.T) {
	ls := startLoops(t, 2)
	before := descriptors(t)
	var wg sync.WaitGroup
	for worker := range 8 {
		wg.Go(func() {
			for round := range 40 {
				o := newOnLoop(t, ls, nil).start()
				id := []byte{byte(worker), byte(round), 'q', 'a'}
				buf := make([]byte, 16)
				pass(t, o.client, o.server, id, buf)
				pass(t, o.server, o.client, append(id, 'x'), buf)
				if !bytes.Equal(buf[:4], id) {
					t.Errorf("got %v, want %v", buf[:4], id)
				}
				switch round % 4 {
				case 0:
					_ = o.client.Close()
					_ = o.server.Close()
				case 1:
					_ = o.client.(*net.TCPConn).SetLinger(0) // sends a reset
					_ = o.client.Close()
				case 2:
					o.Close()
					o.Close()
				default:
					_, _ = o.client.Write(make([]byte, 1<<20))
					o.Close()
				}
				if round%4 == 0 {
					continue // without waiting for its end
				}
				<-o.result
				_ = o.client.Close()
				_ = o.server.Close()
			}
		})
	}
	wg.Wait()
	for end := time.Now().Add(hang); ; time.Sleep(5 * time.Millisecond) {
		n, load := descriptors(t), ls.all[0].load.Load()+ls.all[1].load.Load()
		if n <= before && load == 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d descriptors, %d before; %d sessions left", n, before, load)
		}
	}
}

func descriptors(t testing.TB) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// TestLoopRefusesWhatIsNoSocket: connections that are not plain sockets stay with the goroutines, unchanged.
func TestLoopRefusesWhatIsNoSocket(t *testing.T) {
	near, far := net.Pipe()
	defer far.Close()
	socket, peer := tcpPair(t)
	s := NewSession(1, near, socket, nil)
	relay := &Relay{loops: startLoops(t, 1)}
	result := make(chan error, 1)
	go func() { result <- relay.Run(s, []byte("first ")) }()
	buf := make([]byte, 64)
	_ = far.SetDeadline(time.Now().Add(hang))
	if _, err := far.Write([]byte("second")); err != nil {
		t.Fatal(err)
	}
	if n, err := io.ReadFull(peer, buf[:12]); err != nil || string(buf[:n]) != "first second" {
		t.Errorf("%q, %v", buf[:n], err)
	}
	s.Close()
	<-result
}

// BenchmarkLoop measures a query and its answer through a loop, including the system calls of both peers.
func BenchmarkLoop(b *testing.B) {
	o := newOnLoop(b, startLoops(b, 1), nil).start()
	question, answer, buf := typed('Q', "SELECT 1\x00"), typed('Z', "I"), make([]byte, 64)
	b.ReportAllocs()
	for b.Loop() {
		pass(b, o.client, o.server, question, buf)
		pass(b, o.server, o.client, answer, buf)
	}
	o.Close()
	<-o.result
}
