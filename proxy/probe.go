package proxy

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Probe connects to the engine as a session would, TLS included, and returns an error unless it answers as a PostgreSQL
// server does. It does not authenticate; the engine logs at most a connection.
func (s *Server) Probe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.opts.DialTimeout)
	defer cancel()
	server, err := s.dial(ctx)
	if err != nil {
		return err
	}
	defer server.Close() //nolint:errcheck // nothing was sent that matters
	if s.upstreamTLS != nil {
		closeWrite(server.Conn)
		return nil // the engine has answered SSLRequest
	}
	_ = server.SetDeadline(time.Now().Add(s.opts.DialTimeout))
	answer, err := askTLS(server.Conn)
	switch {
	case err != nil:
		return fmt.Errorf("connected, but it does not answer as a PostgreSQL server: %w", err)
	case answer != 'S' && answer != 'N' && answer != 'E':
		return errors.New("connected, but it does not answer as a PostgreSQL server")
	}
	return nil
}
