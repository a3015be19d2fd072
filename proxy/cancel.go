package proxy

import (
	"context"
	"fmt"
	"io"
	"net"
	"time"

	"go.uber.org/zap"
)

// cancel forwards a CancelRequest on a connection of its own, with TLS where sessions have it. There is one
// engine, so its key needs no translation. The client learns nothing of the outcome but that the engine has closed, as without a proxy.
func (s *Server) cancel(client net.Conn, packet []byte) {
	s.counters.cancelRequests.Add(1)
	if err := s.forwardCancel(packet); err != nil {
		s.counters.cancelFailed.Add(1)
		s.log.Warn("a cancel request did not reach the engine", zap.Error(err))
	}
	closeWrite(client)
}

func (s *Server) forwardCancel(packet []byte) error {
	if len(packet) < minCancel || len(packet) > maxCancel {
		return fmt.Errorf("cancel request has %d bytes", len(packet))
	}
	server, err := s.dial(s.hard)
	if err != nil {
		return err
	}
	defer server.Close()
	_ = server.SetDeadline(time.Now().Add(s.opts.DialTimeout))
	defer context.AfterFunc(s.hard, func() { _ = server.SetDeadline(time.Now()) })()
	if _, err := server.Write(packet); err != nil {
		return fmt.Errorf("write to server: %w", err)
	}
	// The engine closes when it has acted; a client that waits for the end must not be told so before.
	if _, err := io.Copy(io.Discard, server); err != nil {
		s.log.Debug("the engine did not close after a cancel request", zap.Error(err))
	}
	return nil
}
