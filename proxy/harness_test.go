package proxy_test

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/eventually"
	"github.com/dpwatch/dpwatch/proxy"
)

// patience is the time limit for an expected event; it only ends a test that hangs.
const patience = 5 * time.Minute

// recorder is a Sink that keeps all queries.
type recorder struct {
	mu      sync.Mutex
	queries []capture.Query
	full    bool
	fault   string        // the message with which Offer panics; "" for none
	counted func() uint64 // the server's QueriesCaptured, or nil
}

func (r *recorder) Offer(q capture.Query) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fault != "" {
		panic(r.fault)
	}
	if r.full {
		return false
	}
	r.queries = append(r.queries, q)
	return true
}

func (r *recorder) all() []capture.Query {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]capture.Query{}, r.queries...)
}

// find waits for the query with this text, and until the server has counted it and all earlier ones: a server first
// offers queries and then publishes its counters.
func (r *recorder) find(t testing.TB, sql string) capture.Query {
	t.Helper()
	var found capture.Query
	eventually.True(t, "query "+sql+" is captured", func() bool {
		for _, q := range r.all() {
			if q.SQL == sql {
				found = q
				return true
			}
		}
		return false
	})
	if offered := uint64(len(r.all())); r.counted != nil {
		eventually.True(t, "the server has counted what it captured", func() bool { return r.counted() >= offered })
	}
	return found
}

// sqls returns the texts captured so far.
func (r *recorder) sqls() []string {
	var out []string
	for _, q := range r.all() {
		out = append(out, q.SQL)
	}
	return out
}

type running struct {
	*proxy.Server
	addr   string
	sink   *recorder
	cancel context.CancelFunc
	done   chan error // Serve's result
}

func start(t testing.TB, upstream proxy.Address, change func(*proxy.Options)) *running {
	t.Helper()
	r := &running{sink: &recorder{}, done: make(chan error, 1)}
	o := proxy.Options{
		Upstream: upstream, Capture: true, Sink: r.sink,
		DrainTimeout: 50 * time.Millisecond, DrainInterval: 2 * time.Millisecond,
	}
	o.Loops, _ = strconv.Atoi(os.Getenv("DPWATCH_TEST_LOOPS")) // -1: goroutines relay
	if change != nil {
		change(&o)
	}
	var err error
	if r.Server, err = proxy.New(o); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r.sink.counted = func() uint64 { return r.Stats().QueriesCaptured }
	r.addr = l.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel = cancel
	go func() { r.done <- r.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		r.wait(t)
	})
	return r
}

// wait waits for Serve to return and checks that it returned no error. It is idempotent.
func (r *running) wait(t testing.TB) {
	t.Helper()
	select {
	case err := <-r.done:
		if err != nil {
			t.Errorf("Serve: %v", err)
		}
		r.done <- nil
	case <-time.After(patience):
		t.Errorf("Serve has not returned in %v", patience)
	}
}

func (r *running) dial(t testing.TB) net.Conn { return dial(t, r.addr) }

func dial(t testing.TB, addr string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(patience))
	return conn
}

// backend is a scripted engine: it runs handle for every connection.
func backend(t testing.TB, handle func(conn net.Conn)) proxy.Address {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var handlers sync.WaitGroup
	handlers.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			handlers.Go(func() {
				defer conn.Close()
				_ = conn.SetDeadline(time.Now().Add(patience))
				handle(conn)
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		handlers.Wait()
	})
	return proxy.Address{Network: "tcp", Address: l.Addr().String()}
}

// nobody is an address without a listener: tests are never assigned port 1, and no service uses it.
var nobody = proxy.Address{Network: "tcp", Address: "127.0.0.1:1"}

// message builds a typed message.
func message(typ byte, body string) []byte {
	b := binary.BigEndian.AppendUint32([]byte{typ}, uint32(len(body)+4))
	return append(b, body...)
}

// packet builds an untyped packet with a code in front of its body.
func packet(code uint32, body string) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(len(body)+8))
	b = binary.BigEndian.AppendUint32(b, code)
	return append(b, body...)
}

const (
	version30 = 3 << 16
	sslCode   = 1234<<16 | 5679
	gssCode   = 1234<<16 | 5680
	cancel    = 1234<<16 | 5678
)

// hello returns a StartupMessage.
func hello() []byte { return packet(version30, "user\x00ann\x00database\x00bank\x00\x00") }

// greeting returns the messages with which a server accepts a client.
func greeting() []byte {
	var b []byte
	b = append(b, message('R', "\x00\x00\x00\x00")...)
	b = append(b, message('S', "client_encoding\x00UTF8\x00")...)
	b = append(b, message('S', "standard_conforming_strings\x00on\x00")...)
	b = append(b, message('K', "\x00\x00\x00\x01\x00\x00\x00\x02")...)
	return append(b, message('Z', "I")...)
}

// readPacket reads a whole untyped packet.
func readPacket(t testing.TB, conn net.Conn) []byte {
	head := make([]byte, 4)
	if _, err := io.ReadFull(conn, head); err != nil {
		t.Errorf("read packet: %v", err)
		return nil
	}
	b := make([]byte, binary.BigEndian.Uint32(head))
	copy(b, head)
	if _, err := io.ReadFull(conn, b[4:]); err != nil {
		t.Errorf("read packet: %v", err)
	}
	return b
}

// readMessage reads a typed message; io.EOF if the stream ends before it.
func readMessage(conn io.Reader) (typ byte, body string, err error) {
	head := make([]byte, 5)
	if _, err := io.ReadFull(conn, head); err != nil {
		return 0, "", err
	}
	b := make([]byte, binary.BigEndian.Uint32(head[1:])-4)
	_, err = io.ReadFull(conn, b)
	return head[0], string(b), err
}

// send writes all parts in one write.
func send(t testing.TB, conn net.Conn, parts ...[]byte) {
	t.Helper()
	var b []byte
	for _, p := range parts {
		b = append(b, p...)
	}
	if _, err := conn.Write(b); err != nil {
		t.Errorf("write: %v", err)
	}
}

// until reads messages up to one of type last and returns their types.
func until(t testing.TB, conn io.Reader, last byte) string {
	t.Helper()
	var types []byte
	for {
		typ, _, err := readMessage(conn)
		if err != nil {
			if errors.Is(err, io.EOF) && last == 0 {
				return string(types)
			}
			t.Fatalf("read message after %q: %v", types, err)
		}
		types = append(types, typ)
		if typ == last {
			return string(types)
		}
	}
}
