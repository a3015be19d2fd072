package proxy

import (
	"errors"
	"net"

	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/proxy/internal/relay"
	"github.com/dpwatch/dpwatch/proxy/internal/startup"
	"github.com/dpwatch/dpwatch/proxy/internal/tap"
	"github.com/dpwatch/dpwatch/proxy/internal/tracker"
)

// serve creates and runs the session of a client whose StartupMessage was read.
func (s *Server) serve(client net.Conn, start *startup.Client) {
	if !s.acquire() {
		s.counters.RefusedLimit.Add(1)
		s.refuse(start.Conn, startup.TooManySessions)
		return
	}
	defer s.release()
	server, err := s.legs.Dial(s.hard)
	if err != nil {
		s.refuseUpstream(start.Conn, err)
		return
	}
	server, err = s.legs.Bind(start, server)
	if err == nil {
		_, err = server.Write(start.Packet)
	}
	if err != nil {
		_ = server.Close()
		s.refuseUpstream(start.Conn, err)
		return
	}
	if start.Leaf != nil {
		s.counters.TLSSessions.Add(1)
	}
	id := s.nextID()
	session := relay.NewSession(id, start.Conn, server.Conn, s.tap(id, start))
	if s.opts.IdleTimeout > 0 {
		session.WatchIdle()
	}
	s.log.Debug("startup", zap.Uint64("session", id), zap.Stringer("client", start.Peer), zap.Uint32("protocol", start.Version),
		zap.Bool("client_tls", start.Leaf != nil), zap.Bool("server_tls", server.Leaf != nil))
	s.relay(client, session, start.Rest)
}

// relay runs a session to its end. client is the accepted connection; that of the session may be a TLS connection over
// it.
func (s *Server) relay(client net.Conn, session *relay.Session, first []byte) {
	if !s.conns.attach(client, session) { // the server is closing
		session.Close()
		return
	}
	s.log.Debug("session opened", zap.Uint64("session", session.ID))
	err := s.relays.Run(session, first)
	s.conns.detach(client, &s.counters)
	if err != nil && !(session.Opaque && gone(err)) && !session.EndedIdle() {
		s.counters.FailedSessions.Add(1)
	}
	var panicked *relay.PanicError
	if errors.As(err, &panicked) {
		s.log.Error("a session ended by a panic in its relay", zap.ByteString("stack", panicked.Stack))
	}
	fromClient, fromServer := session.Bytes()
	s.log.Debug("session closed", zap.Uint64("session", session.ID), zap.Error(err),
		zap.Uint64("from_client", fromClient), zap.Uint64("from_server", fromServer))
}

// nextID returns the number of a new session.
func (s *Server) nextID() uint64 { return s.opts.SessionIDBase + s.counters.Sessions.Add(1) }

// tap returns the capture state of a new session, or nil if capture is disabled.
func (s *Server) tap(id uint64, start *startup.Client) *tap.Session {
	if !s.opts.Capture {
		return nil
	}
	parsed, err := tracker.ParseStartup(start.Packet[4:])
	t := s.drainer.Open(id, parsed)
	switch {
	case err != nil || parsed.Version>>16 != 3:
		t.Stop(tracker.OffProtocol)
	case parsed.Replication:
		t.Stop(tracker.OffReplication)
	}
	return t
}

// acquire counts a new session as open. It returns false if there are MaxSessions already.
func (s *Server) acquire() bool {
	for {
		n := s.counters.OpenSessions.Load()
		if n >= uint64(s.opts.MaxSessions) {
			return false
		}
		if s.counters.OpenSessions.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// release undoes acquire when a session has ended.
func (s *Server) release() {
	if s.counters.OpenSessions.Add(^uint64(0)) == 0 && s.draining.Load() {
		select {
		case s.drained <- struct{}{}:
		default:
		}
	}
}
