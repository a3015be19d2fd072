package proxy

import (
	"context"
	"fmt"
	"io"
	"net"
	"time"

	"go.uber.org/zap"
)

// cancel forwards a CancelRequest on its own connection, with TLS where sessions use it. With a single engine its key needs
// no translation. As without a proxy, the client learns only that the engine has closed the connection.
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
	// The engine closes after it has handled the request. A client that waits for the close must not see it earlier.
	if _, err := io.Copy(io.Discard, server); err != nil {
		s.log.Debug("the engine did not close after a cancel request", zap.Error(err))
	}
	return nil
}
