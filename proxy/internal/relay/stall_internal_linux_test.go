package relay

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"math/big"
	"net"
	"slices"
	"syscall"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/proxy/internal/tap"
)

// short is a linger time that these tests wait for.
const short = 50 * time.Millisecond

// stalled is a session whose sockets have small buffers.
type stalled struct {
	*Session
	client, server net.Conn // the peers' ends
	result         chan error
}

// smallPair returns both ends of a TCP connection with small buffers.
func smallPair(t *testing.T) (near, far net.Conn) {
	t.Helper()
	near, far = tcpPair(t)
	for _, c := range []net.Conn{near, far} {
		_ = c.(*net.TCPConn).SetReadBuffer(16 << 10)
		_ = c.(*net.TCPConn).SetWriteBuffer(16 << 10)
	}
	return near, far
}

// eachRelay runs a test on an event loop, with goroutines, and with TLS on both sides.
func eachRelay(t *testing.T, linger time.Duration, test func(*testing.T, *stalled)) {
	t.Helper()
	start := func(t *testing.T, secured bool, r *Relay) *stalled {
		nearClient, client := smallPair(t)
		nearServer, server := smallPair(t)
		if secured {
			nearClient, client = secure(t, nearClient, client)
			nearServer, server = secure(t, nearServer, server)
		}
		s := &stalled{Session: NewSession(1, nearClient, nearServer, nil), client: client, server: server, result: make(chan error, 1)}
		go func() { s.result <- r.Run(s.Session, nil) }()
		t.Cleanup(s.Close)
		return s
	}
	t.Run("epoll", func(t *testing.T) {
		t.Parallel()
		ls := startLoops(t, 1)
		ls.all[0].linger = linger
		s := start(t, false, &Relay{loops: ls})
		t.Cleanup(func() { s.Close(); <-s.result })
		test(t, s)
	})
	for name, secured := range map[string]bool{"goroutines": false, "TLS": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, start(t, secured, &Relay{linger: linger}))
		})
	}
}

// secure returns the ends of TLS connections over both ends of a connection.
func secure(t *testing.T, near, far net.Conn) (server, client net.Conn) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	s := tls.Server(near, &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}})
	c := tls.Client(far, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // a test
	done := make(chan error, 1)
	go func() { done <- s.Handshake() }()
	if err := errors.Join(c.Handshake(), <-done); err != nil {
		t.Fatal(err)
	}
	return &quickClose{s, near}, &quickClose{c, far}
}

// quickClose is a TLS connection that is closed at once, as those of the proxy are.
type quickClose struct {
	*tls.Conn
	raw net.Conn
}

func (c *quickClose) Close() error { return c.raw.Close() }

// fill writes until the other end of the session has not accepted anything for a while.
func fill(t *testing.T, to net.Conn, relayed func() uint64) {
	t.Helper()
	go func() { _, _ = to.Write(bytes.Repeat([]byte("x"), 16<<20)) }()
	for last, same := uint64(0), 0; same < 10; time.Sleep(20 * time.Millisecond) {
		if now := relayed(); now == last && now > 0 {
			same++
		} else {
			last, same = now, 0
		}
	}
}

// wantEnd waits for the end of a session, with one of these errors.
func (s *stalled) wantEnd(t *testing.T, want ...error) {
	t.Helper()
	select {
	case err := <-s.result:
		if !slices.ContainsFunc(want, func(want error) bool { return errors.Is(err, want) }) {
			t.Errorf("ended with %v, want %v", err, want)
		}
		s.result <- err
	case <-time.After(hang):
		t.Fatal("the session goes on")
	}
}

// reset closes a connection at once, as a host that has lost it does.
func reset(c net.Conn) {
	if secured, ok := c.(*quickClose); ok {
		c = secured.raw
	}
	_ = c.(*net.TCPConn).SetLinger(0)
	_ = c.Close()
}

// TestClientNeverReads: a session whose engine is gone ends although its client reads nothing.
func TestClientNeverReads(t *testing.T) {
	eachRelay(t, short, func(t *testing.T, s *stalled) {
		fill(t, s.server, s.toClient.bytes.Load)
		reset(s.server)
		s.wantEnd(t, errStalled, syscall.ECONNRESET) // a session may read the reset before it notices the stall
	})
}

// TestEngineNeverReads: a session whose client is gone ends although its engine reads nothing.
func TestEngineNeverReads(t *testing.T) {
	eachRelay(t, short, func(t *testing.T, s *stalled) {
		fill(t, s.client, s.toServer.bytes.Load)
		reset(s.client)
		s.wantEnd(t, errStalled, syscall.ECONNRESET) // as above
	})
}

// TestBothAreThere: a client that reads nothing for many times the linger time gets everything, as long as the engine
// is there.
func TestBothAreThere(t *testing.T) {
	eachRelay(t, time.Millisecond, func(t *testing.T, s *stalled) {
		const size = 1 << 20
		go func() {
			_, _ = s.server.Write(bytes.Repeat([]byte("x"), size))
		}()
		time.Sleep(200 * time.Millisecond)
		if n, err := io.CopyN(io.Discard, s.client, size); err != nil {
			t.Errorf("%d bytes arrive, %v", n, err)
		}
	})
}

// TestClientReadsSlowly: after the engine has closed, a client that keeps reading, more slowly than the linger time for
// all that is left, gets every byte.
func TestClientReadsSlowly(t *testing.T) {
	const linger, size = 4 * time.Second, 1 << 20
	eachRelay(t, linger, func(t *testing.T, s *stalled) {
		go func() {
			_, _ = s.server.Write(bytes.Repeat([]byte("x"), size))
			_ = s.server.(interface{ CloseWrite() error }).CloseWrite()
		}()
		began, got, buf := time.Now(), 0, make([]byte, size/24)
		for {
			n, err := io.ReadFull(s.client, buf)
			got += n
			if err != nil {
				break
			}
			time.Sleep(linger / 8)
		}
		if got != size {
			t.Errorf("%d of %d bytes arrive", got, size)
		}
		if took := time.Since(began); took < 2*linger {
			t.Errorf("the test took %v: it does not show that progress extends the linger time", took)
		}
	})
}

// TestPanicInOrder: a panic while an order is executed leaves those behind it, and their sessions, alone.
func TestPanicInOrder(t *testing.T) {
	l, err := newLoop(&chunkPool{}, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	ls := &loopSet{all: []*loop{l}}
	bad, good, killed := newOnLoop(t, ls, nil), newOnLoop(t, ls, nil), newOnLoop(t, ls, nil)
	bad.toServer.walker = new(tap.Walker) // panics outside its own recover
	done := make([]<-chan struct{}, 0, 3)
	for i, o := range []*onLoop{killed, bad, good} {
		ended, ok := ls.relay(o.Session, []byte("first")[:5*(i%2)]) // the walker of bad runs in join
		if !ok {
			t.Fatal("not relayed by the loop")
		}
		done = append(done, ended)
	}
	killed.Close()
	go l.run() // finds all four orders in one batch
	<-done[0]
	<-done[1]
	if !errors.Is(bad.err, errLoopPanic) || !errors.Is(killed.err, net.ErrClosed) {
		t.Errorf("ended with %v and %v", bad.err, killed.err)
	}
	buf := make([]byte, 64)
	pass(t, good.client, good.server, []byte("hello"), buf)
	pass(t, good.server, good.client, []byte("hello"), buf)
	good.Close()
	<-done[2]
	l.send(order{what: orderStop})
	<-l.stopped
}
