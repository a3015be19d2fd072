package proxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/proxy/internal/relay"
	"github.com/dpwatch/dpwatch/proxy/internal/startup"
	"github.com/dpwatch/dpwatch/proxy/internal/tap"
)

// startupReserve is the number of connections, besides MaxSessions, that can be in startup or carry a cancel request.
const startupReserve = 256

// Server relays sessions between clients and one engine. New returns one; Serve can be called once.
type Server struct {
	opts     Options
	log      *zap.Logger
	legs     *startup.Legs
	drainer  *tap.Drainer
	relays   *relay.Relay
	conns    conns
	counters counters

	served   atomic.Bool
	draining atomic.Bool   // no new session begins
	drained  chan struct{} // holds a token once the last session has ended while draining
	closing  atomic.Bool   // connections in startup are closed
	handlers sync.WaitGroup
	hard     context.Context // ends when connections are closed by force
	stopHard context.CancelFunc
}

// New returns a server, or an error that lists all errors of the options. It reads the TLS files.
func New(o Options) (*Server, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("proxy options: %w", err)
	}
	s := &Server{opts: o, log: o.Logger.Named("proxy"), drainer: tap.NewDrainer(o.tap()), drained: make(chan struct{}, 1)}
	legs := o.legs()
	legs.Pass = s.pass
	var err error
	if s.legs, err = startup.New(legs); err != nil {
		return nil, fmt.Errorf("proxy options: %w", err)
	}
	s.conns.open = map[net.Conn]*relay.Session{}
	s.hard, s.stopHard = context.WithCancel(context.Background())
	return s, nil
}

// CheckUpstream returns an error if clients could not authenticate with channel binding. Call it before Serve. With TLS
// on both legs it fetches the engine's certificate and compares it with the proxy's. It returns a *CertificateError if
// they differ, and an *UpstreamError if the engine is unreachable or its TLS is not as configured; the certificates are
// then compared for each session. Other combinations need no check and return nil.
func (s *Server) CheckUpstream(ctx context.Context) error { return s.legs.Check(ctx) }

// Probe connects to the engine like a session, with TLS if it is configured, and returns an error unless the engine
// answers like a PostgreSQL server. It does not authenticate; the engine logs at most a connection.
func (s *Server) Probe(ctx context.Context) error { return s.legs.Probe(ctx) }

// Serve accepts connections from the listeners until ctx ends or a listener fails. Then it waits at most DrainTimeout
// for the open sessions to end, closes the remaining ones and the listeners, and returns when all its goroutines have
// ended and all captured queries have been offered. It returns nil after ctx ended, otherwise the listener's error.
// While sessions drain, the listeners remain open: cancel requests are forwarded, and new sessions are refused with
// SQLSTATE 57P03.
func (s *Server) Serve(ctx context.Context, listeners ...net.Listener) error {
	if s.served.Swap(true) {
		return errors.New("proxy: Serve was called twice")
	}
	if s.opts.ClientTLS.Mode == TLSPassthrough {
		s.log.Warn("TLS is passed through to the engine: sessions with TLS are NOT captured and NOT audited")
	}
	stopDrainer, drained := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(drained)
		s.drainer.Run(stopDrainer)
	}()
	var sweeper sync.WaitGroup
	if s.opts.IdleTimeout > 0 {
		sweeper.Go(func() { s.sweepIdle(stopDrainer) })
	}
	var err error
	if s.relays, err = relay.New(s.opts.Loops, s.log); err != nil {
		s.log.Warn("event loops are unavailable: goroutines relay all sessions, which takes more CPU", zap.Error(err))
	}
	err = s.accept(ctx, listeners)
	s.relays.Stop()
	close(stopDrainer)
	sweeper.Wait()
	<-drained
	return err
}

// accept runs the listeners until ctx ends or one of them fails, then drains the sessions.
func (s *Server) accept(ctx context.Context, listeners []net.Listener) error {
	accepting, stop := context.WithCancel(context.Background())
	failed := make(chan error, len(listeners))
	var loops sync.WaitGroup
	for _, l := range listeners {
		loops.Go(func() {
			if err := s.acceptFrom(accepting, l); err != nil {
				failed <- err
			}
		})
	}
	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	s.drain(func() {
		stop()
		for _, l := range listeners {
			_ = l.Close()
		}
		loops.Wait()
	})
	return err
}

// acceptFrom accepts until ctx ends. It returns an error if the listener was closed elsewhere; after any other error
// (no file descriptors left, say) it retries.
func (s *Server) acceptFrom(ctx context.Context, l net.Listener) error {
	delay := 5 * time.Millisecond
	for {
		client, err := l.Accept()
		switch {
		case err == nil:
			delay = 5 * time.Millisecond
			s.counters.Connections.Add(1)
			s.start(client)
			continue
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, net.ErrClosed):
			return fmt.Errorf("accept on %s: %w", l.Addr(), err)
		}
		s.log.Warn("a connection could not be accepted", zap.Error(err), zap.Duration("retry_in", delay))
		select {
		case <-time.After(delay):
		case <-ctx.Done():
			return nil
		}
		delay = min(2*delay, time.Second)
	}
}

// start handles a connection in its own goroutine.
func (s *Server) start(client net.Conn) {
	if !s.conns.add(client, s.opts.MaxSessions+startupReserve) {
		s.counters.RefusedLimit.Add(1)
		startup.TooManySessions.Send(client)
		_ = client.Close()
		return
	}
	if tcp, ok := client.(*net.TCPConn); ok {
		_ = tcp.SetKeepAliveConfig(net.KeepAliveConfig{
			Enable: s.opts.KeepAlive > 0, Idle: s.opts.KeepAlive, Interval: s.opts.KeepAlive,
		})
	}
	s.handlers.Go(func() {
		defer s.conns.remove(client)
		err := relay.Contained(func() error { s.handle(client); return nil })
		var panicked *relay.PanicError
		if errors.As(err, &panicked) {
			s.counters.FailedSessions.Add(1)
			s.log.Error("a connection ended by a panic", zap.ByteString("stack", panicked.Stack))
		}
	})
}

// startupGrace is how long connections that have no session yet when a drain begins may go on to send their first
// packet, while sessions are open.
const startupGrace = time.Second

// drain waits for the open sessions until the deadline, stops accepting, and closes the remaining ones.
func (s *Server) drain(stopAccepting func()) {
	s.draining.Store(true)
	s.conns.interruptStartups(startupGrace) // a cancel request that is on its way is still forwarded
	open := s.counters.OpenSessions.Load()
	s.log.Info("draining", zap.Uint64("sessions", open))
	deadline := time.AfterFunc(max(s.opts.DrainTimeout, 0), func() {
		s.stopHard()
		s.conns.closeAll()
	})
	if open > 0 {
		select {
		case <-s.drained:
		case <-s.hard.Done():
		}
	}
	stopAccepting()
	s.closing.Store(true)
	s.conns.interruptStartups(0)
	s.handlers.Wait()
	deadline.Stop()
	s.stopHard()
}
