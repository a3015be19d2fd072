package proxy

import (
	"errors"
	"net"
	"syscall"
	"time"

	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/proxy/internal/relay"
	"github.com/dpwatch/dpwatch/proxy/internal/startup"
)

// pass relays a client's TLS session to the engine without decrypting it. first holds the client's bytes: an
// SSLRequest, or, with direct, the beginning of a TLS handshake. It returns true when the client's connection has
// ended. It returns false if the engine rejects the SSLRequest: then the client has received the answer N and continues
// without TLS.
func (s *Server) pass(client net.Conn, first []byte, direct bool) (over bool) {
	refuse := func(r startup.Refusal) bool {
		if !direct { // the client understands an error instead of the answer, but not inside direct TLS
			s.refuse(client, r)
		}
		return true
	}
	if s.draining.Load() {
		s.counters.RefusedDraining.Add(1)
		return refuse(startup.ShuttingDown)
	}
	if !s.acquire() {
		s.counters.RefusedLimit.Add(1)
		return refuse(startup.TooManySessions)
	}
	defer s.release()
	server, err := s.dialPassthrough(direct)
	switch {
	case err != nil:
		s.counters.RefusedUpstream.Add(1)
		s.log.Warn("the engine cannot be reached", zap.Error(err))
		return refuse(startup.UpstreamUnreachable)
	case server == nil:
		_, err := client.Write([]byte{'N'})
		return err != nil
	}
	if !direct {
		if _, err := client.Write([]byte{'S'}); err != nil {
			_ = server.Close()
			return true
		}
		first = nil
	}
	s.counters.UncapturedPassthrough.Add(1)
	_ = client.SetReadDeadline(time.Time{})
	session := relay.NewSession(s.nextID(), client, server, nil)
	session.Opaque = true
	s.relay(client, session, first)
	return true
}

// dialPassthrough connects to the engine. Unless the client began with a TLS handshake, it sends an SSLRequest; the
// connection is nil if the engine rejects that.
func (s *Server) dialPassthrough(direct bool) (net.Conn, error) {
	if direct {
		return s.legs.DialPlain(s.hard)
	}
	server, answer, err := s.legs.Request(s.hard)
	if err == nil && answer != 'S' {
		_ = server.Close()
		return nil, nil
	}
	return server, err
}

// gone reports whether an error is that of a write to a connection that the other side has closed. Most TLS sessions
// end with it: the engine sends close_notify to a client that has already closed.
func gone(err error) bool { return errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) }
