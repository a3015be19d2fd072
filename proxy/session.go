package proxy

import (
	"errors"
	"net"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/proxy/internal/tracker"
)

// serverGone limits how long a client can go on after the engine closed its side: long enough to read the remaining data,
// short enough not to hold the session for a client that never reads.
const serverGone = 30 * time.Second

// session is one client's connection and its connection to the engine.
type session struct {
	id             uint64
	client, server net.Conn
	capture        *tapped    // nil without capture
	opaque         bool       // TLS is passed through
	idle           *idleWatch // nil unless idle sessions end; the pumps update it
	toServer       pump
	toClient       pump

	loops *loopSet // nil: goroutines relay

	mu    sync.Mutex // guards the fields below
	err   error      // the first error
	epoll epoll      // relays the session instead of its goroutines; may be nil
}

// newSession joins two connections. With a nil capture it is a plain relay.
func newSession(id uint64, client, server net.Conn, capture *tapped) *session {
	s := &session{id: id, client: client, server: server, capture: capture}
	s.toServer = pump{src: client, dst: server, srcSide: "client", dstSide: "server"}
	s.toClient = pump{src: server, dst: client, srcSide: "server", dstSide: "client"}
	if capture != nil {
		s.toServer.session, s.toClient.session = capture, capture
		s.toServer.walker, s.toClient.walker = newWalkers(capture)
	}
	return s
}

// watchIdle makes the pumps record whether the session is idle.
func (s *session) watchIdle() {
	s.idle = newIdleWatch()
	s.toServer.headers, s.toClient.headers = &s.idle.client, &s.idle.server
}

// run relays until both directions have ended and returns the first error. First holds the bytes that the client sent after
// its StartupMessage. Both connections are then closed.
func (s *session) run(first []byte, chunks *chunkPool) error {
	if ended, ok := s.loops.relay(s, first); ok {
		<-ended
		if s.capture != nil {
			s.capture.end()
		}
		return s.err
	}
	var toClient sync.WaitGroup
	toClient.Go(func() {
		err := contained(func() error { return s.toClient.run(nil, chunks) })
		if err != nil && !ofServer(err) {
			s.fail(err)
			return
		}
		s.note(err)
		closeWrite(s.client)
		_ = s.client.SetReadDeadline(time.Now().Add(serverGone))
	})
	err := contained(func() error { return s.toServer.run(first, chunks) })
	if ofServer(err) {
		s.note(err)
		err = s.toServer.drop(chunks)
	}
	if err != nil {
		s.fail(err)
	} else {
		closeWrite(s.server)
	}
	toClient.Wait()
	s.close()
	if s.capture != nil {
		s.capture.end()
	}
	return s.err
}

// fail records the first error and ends both directions.
func (s *session) fail(err error) {
	s.note(err)
	s.close()
}

// note records the first error.
func (s *session) note(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = err
	}
}

// close closes both connections. It is idempotent.
func (s *session) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.epoll != nil {
		s.epoll.kill()
		return
	}
	_ = s.client.Close()
	_ = s.server.Close()
}

// serve creates and runs the session of a client whose StartupMessage was read.
func (s *Server) serve(client net.Conn, start *startup) {
	if !s.acquire() {
		s.counters.refusedLimit.Add(1)
		s.refuse(start.conn, tooManySessions)
		return
	}
	defer s.release()
	server, err := s.dial(s.hard)
	if err != nil {
		s.refuseUpstream(start, err)
		return
	}
	server, err = s.bind(start, server)
	if err == nil {
		_, err = server.Write(start.packet)
	}
	if err != nil {
		_ = server.Close()
		s.refuseUpstream(start, err)
		return
	}
	if start.leaf != nil {
		s.counters.tlsSessions.Add(1)
	}
	id := s.nextID()
	session := newSession(id, start.conn, server.Conn, s.tap(id, start))
	if s.opts.IdleTimeout > 0 {
		session.watchIdle()
	}
	s.log.Debug("startup", zap.Uint64("session", id), zap.Stringer("client", start.peer), zap.Uint32("protocol", start.version),
		zap.Bool("client_tls", start.leaf != nil), zap.Bool("server_tls", server.leaf != nil))
	s.relay(client, session, start.rest)
}

// relay runs a session to its end. Client is the connection as accepted, whatever wraps it in the session. A leg that is a
// *net.TCPConn or *net.UnixConn stays plain; any other (TLS, a filter) buffers bytes and must be read with Read.
func (s *Server) relay(client net.Conn, session *session, first []byte) {
	if session.idle == nil { // loops do not update idle watches
		session.loops = s.loops
	}
	if !s.conns.attach(client, session) { // the server is closing
		session.close()
		return
	}
	s.log.Debug("session opened", zap.Uint64("session", session.id))
	err := session.run(first, &s.chunks)
	s.conns.detach(client, &s.counters)
	if err != nil && !(session.opaque && gone(err)) && !session.endedIdle() {
		s.counters.failed.Add(1)
	}
	var fault *panicError
	if errors.As(err, &fault) {
		s.log.Error("a session ended by a panic in its relay", zap.ByteString("stack", fault.stack))
	}
	s.log.Debug("session closed", zap.Uint64("session", session.id), zap.Error(err),
		zap.Uint64("from_client", session.toServer.bytes.Load()), zap.Uint64("from_server", session.toClient.bytes.Load()))
}

// nextID returns the number of a new session.
func (s *Server) nextID() uint64 { return s.opts.SessionIDBase + s.counters.sessions.Add(1) }

// tap returns the capture state of a new session, nil if it is not captured.
func (s *Server) tap(id uint64, start *startup) *tapped {
	if !s.opts.Capture {
		return nil
	}
	parsed, err := tracker.ParseStartup(start.packet[4:])
	t := s.drainer.open(id, parsed, &s.opts)
	switch {
	case err != nil || parsed.Version>>16 != 3:
		t.stop(tracker.OffProtocol)
	case parsed.Replication:
		t.stop(tracker.OffReplication)
	}
	return t
}

// acquire reserves a place for a session; false if all are taken.
func (s *Server) acquire() bool {
	for {
		n := s.counters.open.Load()
		if n >= uint64(s.opts.MaxSessions) {
			return false
		}
		if s.counters.open.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// release returns the place of a session.
func (s *Server) release() {
	if s.counters.open.Add(^uint64(0)) == 0 && s.draining.Load() {
		select {
		case s.drained <- struct{}{}:
		default:
		}
	}
}
