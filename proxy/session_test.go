package proxy_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/dpwatch/dpwatch/internal/eventually"
	"github.com/dpwatch/dpwatch/proxy"
)

// ready is an engine that accepts the client and then runs serve.
func ready(t testing.TB, serve func(conn net.Conn)) proxy.Address {
	return backend(t, func(conn net.Conn) {
		readPacket(t, conn)
		send(t, conn, greeting())
		serve(conn)
	})
}

func (r *running) enter(t testing.TB) net.Conn {
	t.Helper()
	conn := r.dial(t)
	send(t, conn, hello())
	until(t, conn, 'Z')
	return conn
}

// obliging answers every simple query with success.
func obliging(conn net.Conn) {
	for {
		typ, _, err := readMessage(conn)
		if err != nil || typ == 'X' {
			return
		}
		if typ == 'Q' {
			_, _ = conn.Write(append(message('C', "SELECT 1\x00"), message('Z', "I")...))
		}
	}
}

func TestCapture(t *testing.T) {
	t.Parallel()
	p := start(t, ready(t, obliging), nil)
	conn := p.enter(t)
	before := time.Now()
	send(t, conn, message('Q', "SELECT 1 /* a */;\x00"))
	until(t, conn, 'Z')
	q := p.sink.find(t, "SELECT 1 /* a */")
	if q.User != "ann" || q.Database != "bank" || q.Tag != "SELECT 1" || q.SessionID == 0 {
		t.Errorf("captured %+v", q)
	}
	if q.Completed.Before(before) || q.Completed.After(time.Now()) {
		t.Errorf("completed at %v, which is not between %v and now", q.Completed, before)
	}
	eventually.True(t, "it is counted", func() bool { return p.Stats().QueriesCaptured == 1 })
}

// TestAnswerSeenFirst: the tracker handles an engine that answers before the query comes.
func TestAnswerSeenFirst(t *testing.T) {
	t.Parallel()
	p := start(t, backend(t, func(conn net.Conn) {
		readPacket(t, conn)
		send(t, conn, greeting(), message('C', "SELECT 1\x00"), message('Z', "I"))
		_, _ = io.Copy(io.Discard, conn)
	}), nil)
	conn := p.enter(t)
	until(t, conn, 'Z')
	send(t, conn, message('Q', "SELECT 1\x00"))
	p.sink.find(t, "SELECT 1")
}

// TestNegotiateProtocolVersion: the message goes through as often as the engine sends it, before authentication.
func TestNegotiateProtocolVersion(t *testing.T) {
	t.Parallel()
	negotiate := message('v', "\x00\x03\x00\x00\x00\x00\x00\x01_pq_.x\x00")
	p := start(t, backend(t, func(conn net.Conn) {
		readPacket(t, conn)
		send(t, conn, negotiate, negotiate, greeting())
		obliging(conn)
	}), nil)
	conn := p.dial(t)
	send(t, conn, packet(version30|2, "user\x00ann\x00_pq_.x\x001\x00\x00"))
	if got := until(t, conn, 'Z'); got != "vvRSSKZ" {
		t.Errorf("messages %q", got)
	}
	send(t, conn, message('Q', "SELECT 1\x00"))
	until(t, conn, 'Z')
	p.sink.find(t, "SELECT 1")
}

// TestBurst: many more messages than fit into the tap, in less time than the drainer's interval.
func TestBurst(t *testing.T) {
	t.Parallel()
	p := start(t, ready(t, obliging), func(o *proxy.Options) { o.DrainInterval = time.Hour })
	conn := p.enter(t)
	const n, atOnce = 20_000, 20
	for range n / atOnce {
		send(t, conn, bytes.Repeat(message('Q', "SELECT 1\x00"), atOnce))
		for range atOnce {
			until(t, conn, 'Z')
		}
	}
	_ = conn.Close()
	p.cancel()
	p.wait(t)
	stats := p.Stats()
	if stats.QueriesCaptured != n || stats.UncapturedOverflow != 0 {
		t.Errorf("stats %+v", stats)
	}
}

// TestCaptureComesBack: a client that sends more at once than the budget loses the capture of these messages, not of
// later ones. The settings are uncertain afterwards if the lost messages may have changed them.
func TestCaptureComesBack(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		loops     int
		sql       string
		uncertain bool
	}{
		"loop":       {1, "SELECT 'many'", false},
		"goroutines": {-1, "SELECT 'many'", false},
		"set_config": {1, "SELECT set_config('a.b', 'c', false)", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := start(t, ready(t, obliging), func(o *proxy.Options) { o.CaptureBudgetBytes, o.Loops = 8<<10, test.loops })
			conn := p.enter(t)
			const n = 4000
			var sent sync.WaitGroup
			sent.Go(func() { _, _ = conn.Write(bytes.Repeat(message('Q', test.sql+"\x00"), n)) })
			for range n {
				until(t, conn, 'Z')
			}
			sent.Wait()
			ask := func(sql string) {
				send(t, conn, message('Q', sql+"\x00"))
				until(t, conn, 'Z')
			}
			eventually.True(t, "the capture is back", func() bool {
				ask("SELECT 'after'")
				return slices.Contains(p.sink.sqls(), "SELECT 'after'")
			})
			if q := p.sink.find(t, "SELECT 'after'"); q.Doubt.Has("dp.epsilon") != test.uncertain {
				t.Errorf("the settings are uncertain: %t", q.Doubt.Has("dp.epsilon"))
			}
			ask("DISCARD ALL")
			ask("SELECT 'discarded'")
			if q := p.sink.find(t, "SELECT 'discarded'"); q.Doubt.Has("dp.epsilon") {
				t.Error("the settings are uncertain though all was discarded")
			}
			stats := p.Stats()
			if many := stats.QueriesCaptured + stats.SkippedNotCopied; stats.UncapturedOverflow == 0 || many < n {
				t.Errorf("%d statements were captured or counted of more than %d; stats %+v", many, n, stats)
			}
			if s := stats; s.UncapturedPairing+s.UncapturedProtocol+s.UncapturedPanic != 0 {
				t.Errorf("stats %+v", s)
			}
		})
	}
}

func TestOneByteWrites(t *testing.T) {
	t.Parallel()
	p := start(t, ready(t, func(conn net.Conn) { obliging(trickle{conn}) }), nil)
	conn := p.dial(t)
	send(t, trickle{conn}, hello(), message('Q', "SELECT 1\x00"), message('Q', "SELECT 2\x00"))
	until(t, conn, 'Z')
	until(t, conn, 'Z')
	until(t, conn, 'Z')
	p.sink.find(t, "SELECT 1")
	p.sink.find(t, "SELECT 2")
}

type trickle struct{ net.Conn }

func (c trickle) Write(b []byte) (int, error) {
	for i := range b {
		if _, err := c.Conn.Write(b[i : i+1]); err != nil {
			return i, err
		}
	}
	return len(b), nil
}

// TestHalfClose: a client that has half-closed its connection can still read everything.
func TestHalfClose(t *testing.T) {
	t.Parallel()
	gone := make(chan struct{})
	p := start(t, ready(t, func(conn net.Conn) {
		_, _ = io.Copy(io.Discard, conn) // until the client's end
		<-gone
		_, _ = conn.Write(message('N', strings.Repeat("x", 100_000)))
	}), nil)
	conn := p.enter(t)
	closeWrite(t, conn)
	close(gone)
	if got, err := io.ReadAll(conn); err != nil || len(got) != 100_005 {
		t.Errorf("got %d bytes, %v; want 100005", len(got), err)
	}
	eventually.True(t, "the session has ended", func() bool { return p.Stats().OpenSessions == 0 })
	if n := p.Stats().FailedSessions; n != 0 {
		t.Errorf("%d sessions failed", n)
	}
}

// TestServerCloses: the client reads the engine's last message, then the end, and can still write.
func TestServerCloses(t *testing.T) {
	t.Parallel()
	p := start(t, ready(t, func(conn net.Conn) { _, _ = conn.Write(message('E', "SFATAL\x00\x00")) }), nil)
	conn := p.enter(t)
	if got, err := io.ReadAll(conn); err != nil || !bytes.Equal(got, message('E', "SFATAL\x00\x00")) {
		t.Errorf("got %q, %v", got, err)
	}
	_ = conn.Close()
	eventually.True(t, "the session has ended", func() bool { return p.Stats().OpenSessions == 0 })
}

func TestServerResets(t *testing.T) {
	t.Parallel()
	p := start(t, ready(t, func(conn net.Conn) { _ = conn.(*net.TCPConn).SetLinger(0) }), nil)
	conn := p.enter(t)
	if got, err := io.ReadAll(conn); err != nil || len(got) > 0 {
		t.Errorf("got %q, %v, want the end", got, err)
	}
	_ = conn.Close()
	eventually.True(t, "the session has failed", func() bool {
		stats := p.Stats()
		return stats.OpenSessions == 0 && stats.FailedSessions == 1
	})
}

// TestLastWords: a server that closes while its client still sends resets the connection, but has sent the reason
// before. The client reads it, as without a proxy.
func TestLastWords(t *testing.T) {
	t.Parallel()
	for name, loops := range map[string]int{"loop": 1, "goroutines": -1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			last := message('E', "SFATAL\x00C57P01\x00Mterminating connection\x00\x00")
			p := start(t, ready(t, func(conn net.Conn) {
				if _, err := io.ReadFull(conn, make([]byte, 1<<20)); err != nil {
					t.Errorf("read: %v", err)
				}
				send(t, conn, last) // much of the client's data is never read, so closing resets
			}), func(o *proxy.Options) { o.Loops = loops })
			var clients sync.WaitGroup
			for range 30 {
				conn := p.enter(t)
				clients.Go(func() { _, _ = conn.Write(bytes.Repeat(message('d', strings.Repeat("x", 995)), 16<<10)) })
				clients.Go(func() {
					if got, err := io.ReadAll(conn); err != nil || !bytes.Equal(got, last) {
						t.Errorf("the client hears %q, %v", got, err)
					}
					_ = conn.Close()
				})
			}
			clients.Wait()
			eventually.True(t, "the sessions have failed", func() bool {
				stats := p.Stats()
				return stats.OpenSessions == 0 && stats.FailedSessions == 30
			})
		})
	}
}

// TestUncaptured: if capture stops, the bytes are still relayed.
func TestUncaptured(t *testing.T) {
	t.Parallel()
	overflow := bytes.Repeat(message('S', ""), 2000) // Syncs that are never answered
	tests := []struct {
		name    string
		startup []byte
		client  []byte
		server  []byte
		count   func(proxy.Stats) uint64
	}{
		{"unknown message of the client", hello(), message('!', "abc"), nil, func(s proxy.Stats) uint64 { return s.UncapturedProtocol }},
		{"unknown message of the server", hello(), nil, message('!', "abc"), func(s proxy.Stats) uint64 { return s.UncapturedProtocol }},
		{"length below four", hello(), []byte("Q\x00\x00\x00\x03SELECT 1\x00"), nil, func(s proxy.Stats) uint64 { return s.UncapturedProtocol }},
		{"length above a gigabyte", hello(), []byte("d\x7f\xff\xff\xffabc"), nil, func(s proxy.Stats) uint64 { return s.UncapturedProtocol }},
		{"negative length", hello(), nil, []byte("D\xff\xff\xff\xffabc"), func(s proxy.Stats) uint64 { return s.UncapturedProtocol }},
		{"overflow", hello(), overflow, nil, func(s proxy.Stats) uint64 { return s.UncapturedOverflow }},
		{"answer of another kind", hello(), message('Q', "SELECT 1\x00"), message('1', ""), func(s proxy.Stats) uint64 { return s.UncapturedPairing }},
		{"protocol 2.0", packet(2<<16, strings.Repeat("\x00", 288)), []byte("anything"), []byte("whatever"), func(s proxy.Stats) uint64 { return s.UncapturedProtocol }},
		{"startup without end", packet(version30, "user\x00ann"), nil, nil, func(s proxy.Stats) uint64 { return s.UncapturedProtocol }},
		{"replication", packet(version30, "user\x00ann\x00replication\x00true\x00\x00"), message('Q', "IDENTIFY_SYSTEM\x00"), nil, func(s proxy.Stats) uint64 { return s.UncapturedReplication }},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got := make(chan []byte, 1)
			want := append(append([]byte{}, test.client...), message('Q', "SELECT 'after'\x00")...)
			p := start(t, ready(t, func(conn net.Conn) {
				send(t, conn, test.server)
				b := make([]byte, len(want))
				_, err := io.ReadFull(conn, b)
				if err != nil {
					t.Errorf("read: %v", err)
				}
				got <- b
			}), func(o *proxy.Options) { o.CaptureBudgetBytes = 8 << 10 })
			conn := p.dial(t)
			send(t, conn, test.startup)
			if _, err := io.ReadFull(conn, make([]byte, len(greeting())+len(test.server))); err != nil {
				t.Fatal(err)
			}
			send(t, conn, test.client)
			eventually.True(t, "it is counted", func() bool { return test.count(p.Stats()) == 1 })
			send(t, conn, message('Q', "SELECT 'after'\x00"))
			if !bytes.Equal(<-got, want) {
				t.Error("the engine got other bytes than the client sent")
			}
			if n := len(p.sink.all()); n != 0 {
				t.Errorf("captured %d queries", n)
			}
		})
	}
}

func TestSinkFaults(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		sink *recorder
		ok   func(proxy.Stats) bool
	}{
		{"full", &recorder{full: true}, func(s proxy.Stats) bool { return s.QueriesDropped == 2 && s.QueriesCaptured == 2 }},
		{"panics", &recorder{fault: "a fault"}, func(s proxy.Stats) bool { return s.UncapturedPanic == 1 }},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			p := start(t, ready(t, obliging), func(o *proxy.Options) { o.Sink = test.sink })
			conn := p.enter(t)
			for range 2 {
				send(t, conn, message('Q', "SELECT 1\x00"))
				until(t, conn, 'Z')
			}
			eventually.True(t, "it is counted", func() bool { return test.ok(p.Stats()) })
			send(t, conn, message('Q', "SELECT 1\x00"))
			until(t, conn, 'Z')
		})
	}
}

// TestLargeMessages: bodies far over the budget go through, are not copied, and are counted; later statements are
// captured.
func TestLargeMessages(t *testing.T) {
	t.Parallel()
	p := start(t, ready(t, obliging), func(o *proxy.Options) { o.CaptureBudgetBytes = 16 << 10 })
	conn := p.enter(t)
	send(t, conn, message('d', strings.Repeat("x", 3<<20)), message('Q', "SELECT '"+strings.Repeat("x", 1<<20)+"'\x00"))
	until(t, conn, 'Z')
	send(t, conn, message('Q', "SELECT 'after'\x00"))
	until(t, conn, 'Z')
	if q := p.sink.find(t, "SELECT 'after'"); q.Doubt.Has("dp.epsilon") {
		t.Error("settings are uncertain, though nothing in the statement can change them")
	}
	stats := p.Stats()
	if stats.SkippedNotCopied != 1 || stats.QueriesCaptured != 1 || stats.BytesFromClients < 4<<20 {
		t.Errorf("stats %+v", stats)
	}
}

func TestWithoutCapture(t *testing.T) {
	t.Parallel()
	p := start(t, ready(t, obliging), func(o *proxy.Options) { o.Capture, o.Sink = false, nil })
	conn := p.enter(t)
	send(t, conn, message('Q', "SELECT 1\x00"))
	until(t, conn, 'Z')
	if stats := p.Stats(); stats.QueriesCaptured != 0 || stats.Sessions != 1 {
		t.Errorf("stats %+v", stats)
	}
}

func TestDrain(t *testing.T) {
	t.Parallel()
	t.Run("a session may finish", func(t *testing.T) {
		t.Parallel()
		p := start(t, ready(t, obliging), func(o *proxy.Options) { o.DrainTimeout = patience })
		conn := p.enter(t)
		half := p.dial(t) // still in its startup
		eventually.True(t, "both are accepted", func() bool { return p.Stats().Connections == 2 })
		p.cancel()
		if e := refusalOf(t, half); e.Code != "57P03" {
			t.Errorf("SQLSTATE %s, want 57P03", e.Code)
		}
		late := p.dial(t)
		send(t, late, hello())
		if e := refusalOf(t, late); e.Code != "57P03" {
			t.Errorf("a new client: SQLSTATE %s, want 57P03", e.Code)
		}
		idle := p.dial(t) // sends nothing, and is not waited for at the end
		eventually.True(t, "it is accepted", func() bool { return p.Stats().Connections == 4 })
		send(t, conn, message('Q', "SELECT 1\x00"))
		until(t, conn, 'Z')
		_ = conn.Close()
		p.wait(t)
		if diff := cmp.Diff([]string{"SELECT 1"}, p.sink.sqls()); diff != "" {
			t.Errorf("captured when Serve returned: %s", diff)
		}
		if e := refusalOf(t, idle); e.Code != "57P03" {
			t.Errorf("a client that said nothing: SQLSTATE %s, want 57P03", e.Code)
		}
		if c, err := net.Dial("tcp", p.addr); err == nil {
			_ = c.Close()
			t.Error("a connection was taken after Serve returned")
		}
	})
	t.Run("a statement can be cancelled", func(t *testing.T) {
		t.Parallel()
		cancelled := make(chan struct{})
		p := start(t, backend(t, func(conn net.Conn) {
			if b := readPacket(t, conn); len(b) == 16 && binary.BigEndian.Uint32(b[4:]) == cancel {
				close(cancelled)
				return
			}
			send(t, conn, greeting())
			<-cancelled
			send(t, conn, message('E', "C57014\x00\x00"), message('Z', "I"))
			_, _ = io.ReadAll(conn)
		}), func(o *proxy.Options) { o.DrainTimeout = patience })
		conn := p.enter(t)
		send(t, conn, message('Q', "SELECT pg_sleep(600)\x00"))
		half := p.dial(t) // is refused when the drain has begun
		eventually.True(t, "both are accepted", func() bool { return p.Stats().Connections == 2 })
		p.cancel()
		refusalOf(t, half)
		canceller := p.dial(t)
		send(t, canceller, packet(cancel, "\x00\x00\x00\x01\x00\x00\x00\x02"))
		if got := until(t, conn, 'Z'); got != "EZ" {
			t.Errorf("messages %q", got)
		}
		_ = conn.Close()
		p.wait(t)
		if n := p.Stats().CancelRequests; n != 1 {
			t.Errorf("%d cancel requests", n)
		}
	})
	t.Run("a cancel request that is on its way arrives", func(t *testing.T) {
		t.Parallel()
		cancelled := make(chan struct{})
		p := start(t, backend(t, func(conn net.Conn) {
			if b := readPacket(t, conn); len(b) == 16 && binary.BigEndian.Uint32(b[4:]) == cancel {
				close(cancelled)
				return
			}
			send(t, conn, greeting())
			_, _ = io.ReadAll(conn)
		}), func(o *proxy.Options) { o.DrainTimeout = patience })
		conn := p.enter(t)
		// A machine that stalls for a second between the two halves refuses the second one; then it is tried again.
		for try, forwarded := 0, false; !forwarded; try++ {
			if try == 20 {
				t.Fatal("no cancel request was forwarded")
			}
			core, logs := observer.New(zap.InfoLevel)
			q := start(t, proxy.Address{Network: "tcp", Address: p.addr}, func(o *proxy.Options) { o.DrainTimeout, o.Logger = patience, zap.New(core) })
			other := q.enter(t)
			canceller, request := q.dial(t), packet(cancel, "\x00\x00\x00\x01\x00\x00\x00\x02")
			send(t, canceller, request[:4])
			eventually.True(t, "it is accepted", func() bool { return q.Stats().Connections == 2 })
			time.Sleep(20 * time.Millisecond) // it is being read, most probably
			q.cancel()
			eventually.True(t, "it drains", func() bool { return logs.FilterMessage("draining").Len() == 1 })
			_, _ = canceller.Write(request[4:])
			_, _ = io.ReadAll(canceller)
			forwarded = q.Stats().CancelRequests == 1
			_ = other.Close()
			q.wait(t)
		}
		<-cancelled
		_ = conn.Close()
	})
	t.Run("a cancel request that hangs is not waited for", func(t *testing.T) {
		t.Parallel()
		reached, over := make(chan struct{}), make(chan struct{})
		p := start(t, backend(t, func(conn net.Conn) {
			readPacket(t, conn)
			close(reached)
			<-over
		}), func(o *proxy.Options) { o.DrainTimeout, o.DialTimeout = time.Millisecond, time.Hour })
		send(t, p.dial(t), packet(cancel, "\x00\x00\x00\x01\x00\x00\x00\x02"))
		<-reached
		p.cancel()
		p.wait(t)
		close(over)
	})
	t.Run("a session that stays is closed", func(t *testing.T) {
		t.Parallel()
		p := start(t, ready(t, obliging), nil)
		conn := p.enter(t)
		p.cancel()
		p.wait(t)
		if _, err := conn.Read(make([]byte, 1)); err == nil {
			t.Error("the connection is still open")
		}
		if n := p.Stats().OpenSessions; n != 0 {
			t.Errorf("%d sessions are open", n)
		}
	})
}

func TestServe(t *testing.T) {
	t.Parallel()
	t.Run("listener closed by somebody else", func(t *testing.T) {
		t.Parallel()
		s, err := proxy.New(proxy.Options{Upstream: proxy.Address{Network: "tcp", Address: "127.0.0.1:1"}})
		if err != nil {
			t.Fatal(err)
		}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		_ = l.Close()
		if err := s.Serve(t.Context(), l); !errors.Is(err, net.ErrClosed) {
			t.Errorf("Serve gave %v, want net.ErrClosed", err)
		}
		if err := s.Serve(t.Context(), l); err == nil {
			t.Error("Serve could be called twice")
		}
	})
	t.Run("several listeners", func(t *testing.T) {
		t.Parallel()
		s, err := proxy.New(proxy.Options{Upstream: echo(t), DrainTimeout: -1})
		if err != nil {
			t.Fatal(err)
		}
		tcp, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		unix, err := net.Listen("unix", t.TempDir()+"/s")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- s.Serve(ctx, tcp, unix) }()
		for _, l := range []net.Listener{tcp, unix} {
			conn, err := net.Dial(l.Addr().Network(), l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			send(t, conn, hello())
			readPacket(t, conn)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
