// Package relay moves the bytes of sessions between clients and the engine, unchanged.
//
// It owns a session from its StartupMessage to its end: the event loops, the goroutines where a loop cannot relay, the
// end of each direction, and whether a session is idle. It never decodes a message: what it relayed goes to a
// tap.Walker. Two connections go in; an error, or none, comes out.
package relay

import (
	"net"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/proxy/internal/tap"
	"github.com/dpwatch/dpwatch/proxy/internal/wire"
)

// serverGone limits how long a client can go on after the engine closed its side without reading anything of what is
// left: a client that reads slowly gets all of it, and one that never reads does not hold the session.
const serverGone = 30 * time.Second

// Session is one client's connection and its connection to the engine.
type Session struct {
	ID             uint64
	Client, Server net.Conn
	Opaque         bool         // TLS is passed through
	capture        *tap.Session // nil without capture
	idle           *idleWatch   // nil unless idle sessions end; the pumps update it
	toServer       pump
	toClient       pump
	serverEnded    atomic.Bool // all that the server sent has reached the client's socket, where goroutines relay

	mu   sync.Mutex // guards the fields below
	err  error      // the first error
	kill func()     // ends the session where an event loop relays it; otherwise nil
}

// NewSession joins two connections. With a nil capture it is a plain relay.
func NewSession(id uint64, client, server net.Conn, capture *tap.Session) *Session {
	s := &Session{ID: id, Client: client, Server: server, capture: capture}
	s.toServer = pump{src: client, dst: server, srcSide: "client", dstSide: "server"}
	s.toClient = pump{src: server, dst: client, srcSide: "server", dstSide: "client"}
	if capture != nil {
		s.toServer.walker, s.toClient.walker = capture.Walkers()
	}
	return s
}

// Bytes returns the number of bytes relayed so far.
func (s *Session) Bytes() (fromClient, fromServer uint64) {
	return s.toServer.bytes.Load(), s.toClient.bytes.Load()
}

// Relay relays sessions: on event loops if both sides are plain sockets, otherwise with two goroutines each.
type Relay struct {
	loops  *loopSet // nil: goroutines relay every session
	chunks chunkPool
	linger time.Duration // serverGone
}

// New returns a Relay with n event loops. With an error the Relay works as well, without event loops.
func New(n int, log *zap.Logger) (*Relay, error) {
	r := &Relay{linger: serverGone}
	var err error
	if n > 0 {
		r.loops, err = newLoops(n, &r.chunks, log)
	}
	return r, err
}

// Stop stops the event loops, whose sessions have all ended, and waits for them.
func (r *Relay) Stop() { r.loops.stop() }

// Run relays until both directions have ended and returns the first error. First holds the bytes that the client sent
// after its StartupMessage. Both connections are then closed. A leg that is a *net.TCPConn or *net.UnixConn stays
// plain; any other (TLS, a filter) buffers bytes and must be read with Read.
func (r *Relay) Run(s *Session, first []byte) error {
	if s.capture != nil {
		defer s.capture.End()
	}
	if s.idle == nil { // loops do not update idle watches
		if ended, ok := r.loops.relay(s, first); ok {
			<-ended
			return s.err
		}
	}
	return s.pump(first, &r.chunks, r.linger)
}

// pump relays with two goroutines.
func (s *Session) pump(first []byte, chunks *chunkPool, linger time.Duration) error {
	s.toServer.stall, s.toClient.stall = newStallWatch(s, &s.toServer, linger), newStallWatch(s, &s.toClient, linger)
	var toClient sync.WaitGroup
	toClient.Go(func() {
		err := Contained(func() error { return s.toClient.run(nil, chunks) })
		if err != nil && !ofServer(err) {
			s.fail(err)
			return
		}
		s.note(err)
		s.serverEnded.Store(true)
		wire.CloseWrite(s.Client)
		_ = s.Client.SetReadDeadline(time.Now().Add(linger))
	})
	err := Contained(func() error { return s.toServer.run(first, chunks) })
	if ofServer(err) {
		s.note(err)
		err = s.toServer.drop(chunks)
	}
	if err != nil {
		s.fail(err)
	} else {
		wire.CloseWrite(s.Server)
	}
	toClient.Wait()
	s.Close()
	return s.err
}

// fail records the first error and ends both directions.
func (s *Session) fail(err error) {
	s.note(err)
	s.Close()
}

// note records the first error.
func (s *Session) note(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = err
	}
}

// Close closes both connections. It is idempotent.
func (s *Session) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kill != nil {
		s.kill()
		return
	}
	_ = s.Client.Close()
	_ = s.Server.Close()
}
