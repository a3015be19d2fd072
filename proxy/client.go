package proxy

import (
	"errors"
	"net"
	"time"

	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/proxy/internal/startup"
	"github.com/dpwatch/dpwatch/proxy/internal/wire"
)

// handle serves a client's connection from accept to close.
func (s *Server) handle(client net.Conn) {
	defer client.Close()
	_ = client.SetReadDeadline(time.Now().Add(s.opts.StartupTimeout))
	if s.closing.Load() { // otherwise the deadline just set would replace the one set by drain
		_ = client.SetReadDeadline(time.Now())
	}
	start, err := s.legs.Read(client)
	switch {
	case errors.Is(err, startup.ErrQuiet):
		return
	case errors.Is(err, startup.ErrDirectTLS):
		s.counters.RefusedDirect.Add(1)
		_, _ = client.Write(startup.TLSAlert[:])
		startup.Linger(client)
		return
	case err != nil && !(s.draining.Load() && errors.Is(err, startup.ErrTimeout)):
		s.rejectStartup(start, err)
		return
	}
	if err == nil && start.Cancels() {
		s.cancel(start.Conn, start.Packet)
		return
	}
	if s.draining.Load() {
		s.counters.RefusedDraining.Add(1)
		s.refuse(start.Conn, startup.ShuttingDown)
		return
	}
	if start.Leaf == nil && s.opts.ClientTLS.Mode == TLSRequire { // a cancel request is accepted without TLS, as by PostgreSQL
		s.counters.RefusedTLS.Add(1)
		s.refuse(start.Conn, startup.TLSRequired)
		return
	}
	_ = client.SetReadDeadline(time.Time{})
	s.serve(client, start)
}

// rejectStartup ends a connection whose startup is invalid: with the answer in err, or without one.
func (s *Server) rejectStartup(start *startup.Client, err error) {
	s.counters.RefusedProtocol.Add(1)
	var refused *startup.RefusedError
	if errors.As(err, &refused) {
		s.refuse(start.Conn, refused.Refusal)
		return
	}
	s.log.Info("connection closed: invalid startup packet", zap.Stringer("client", start.Peer), zap.Error(err))
}

// cancel forwards a CancelRequest. Its key needs no translation, because there is only one engine. As without a proxy,
// the client gets no answer: its connection is closed when the engine has closed the other one.
func (s *Server) cancel(client net.Conn, packet []byte) {
	s.counters.CancelRequests.Add(1)
	if err := s.legs.Cancel(s.hard, packet); err != nil {
		s.counters.CancelFailures.Add(1)
		s.log.Warn("a cancel request did not reach the engine", zap.Error(err))
	}
	wire.CloseWrite(client)
}

// refuse sends r as a FATAL error and closes the connection so that the client can read it.
func (s *Server) refuse(client net.Conn, r startup.Refusal) {
	s.log.Info("connection refused", zap.String("sqlstate", r.Code), zap.Stringer("client", client.RemoteAddr()))
	if r.Send(client) {
		startup.Linger(client)
	}
}

// refuseUpstream refuses a client whose session with the engine could not be established.
func (s *Server) refuseUpstream(client net.Conn, err error) {
	s.counters.RefusedUpstream.Add(1)
	s.log.Warn("the session with the engine could not be established", zap.Error(err))
	s.refuse(client, startup.UpstreamRefusal(err))
}
