package proxy

import (
	"context"
	"errors"
	"net"
	"syscall"
	"time"

	"go.uber.org/zap"
)

// pass relays a client's TLS session to the engine, unseen. First holds the client's bytes: an SSLRequest, whose answer
// decides, or the start of direct TLS. It returns true when the client's connection is over, false when the engine has no
// TLS and the client was answered N and continues in plain text.
func (s *Server) pass(client net.Conn, first []byte, direct bool) (over bool) {
	refuse := func(r refusal) bool {
		if !direct { // the client understands an error instead of the answer, but not inside direct TLS
			s.refuse(client, r)
		}
		return true
	}
	if s.draining.Load() {
		s.counters.refusedDraining.Add(1)
		return refuse(shuttingDown)
	}
	if !s.acquire() {
		s.counters.refusedLimit.Add(1)
		return refuse(tooManySessions)
	}
	defer s.release()
	server, err := s.dialPlain(s.hard)
	if err != nil {
		s.counters.refusedUpstream.Add(1)
		s.log.Warn("the engine cannot be reached", zap.Error(err))
		return refuse(upstreamUnreachable)
	}
	if !direct {
		_ = server.SetDeadline(time.Now().Add(s.opts.DialTimeout))
		stop := context.AfterFunc(s.hard, func() { _ = server.SetDeadline(time.Now()) })
		answer, err := askTLS(server)
		stop()
		switch {
		case err != nil:
			_ = server.Close()
			s.counters.refusedUpstream.Add(1)
			s.log.Warn("the engine did not answer an SSLRequest", zap.Error(err))
			return refuse(upstreamUnreachable)
		case answer != 'S':
			_ = server.Close()
			_, err := client.Write([]byte{'N'})
			return err != nil
		}
		_ = server.SetDeadline(time.Time{})
		if _, err := client.Write([]byte{answer}); err != nil {
			_ = server.Close()
			return true
		}
		first = nil
	}
	s.counters.passedThrough.Add(1)
	_ = client.SetReadDeadline(time.Time{})
	session := newSession(s.nextID(), client, server, nil)
	session.opaque = true
	s.relay(client, session, first)
	return true
}

// gone reports whether the other side had closed. That is how most TLS sessions end: an engine sends close_notify to a
// client that has already closed.
func gone(err error) bool { return errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) }
