package proxy

import (
	"time"

	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/proxy/internal/relay"
	"github.com/dpwatch/dpwatch/proxy/internal/startup"
	"github.com/dpwatch/dpwatch/proxy/internal/wire"
)

// sweepIdle ends idle sessions until stop is closed.
func (s *Server) sweepIdle(stop <-chan struct{}) {
	ticker := time.NewTicker(max(s.opts.IdleTimeout/4, time.Millisecond))
	defer ticker.Stop()
	for {
		select {
		case now := <-ticker.C:
			for _, idle := range s.conns.idle(s.opts.IdleTimeout, now) {
				s.counters.IdleEnded.Add(1)
				s.log.Info("idle session ended", zap.Uint64("session", idle.ID))
				endIdle(idle)
			}
		case <-stop:
			return
		}
	}
}

// idle returns the sessions that have been idle for that long.
func (c *conns) idle(limit time.Duration, now time.Time) []*relay.Session {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []*relay.Session
	for _, s := range c.open {
		if s != nil && s.EndsIdle(limit, now) {
			out = append(out, s)
		}
	}
	return out
}

// terminate is the Terminate message of a client.
var terminate = [...]byte{'X', 0, 0, 0, 4}

// endIdle sends an error to the client, as PostgreSQL does, and Terminate to the engine, and closes the session.
func endIdle(s *relay.Session) {
	if startup.IdleTooLong.Send(s.Client) {
		wire.CloseWrite(s.Client)
	}
	_ = s.Server.SetWriteDeadline(time.Now().Add(startup.WriteLimit))
	_, _ = s.Server.Write(terminate[:])
	s.Close()
}
