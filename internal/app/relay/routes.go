package relay

import (
	"context"
	"fmt"
	"net"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/dpwatch/dpwatch/internal/app/admin"
	"github.com/dpwatch/dpwatch/proxy"
)

// routes are the routes of one engine or of all.
type routes []*route

func (r routes) listen() error {
	for _, one := range r {
		if err := one.listen(); err != nil {
			return err
		}
	}
	return nil
}

func (r routes) close() {
	for _, one := range r {
		one.close()
	}
}

// addresses returns the addresses of the listeners.
func (r routes) addresses() []string {
	var out []string
	for _, one := range r {
		out = append(out, admin.Addresses(one.listeners)...)
	}
	return out
}

// serve runs every route until ctx ends or one of them fails; then all drain.
func (r routes) serve(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, one := range r {
		group.Go(func() error { return one.Server.Serve(ctx, one.listeners...) })
	}
	return group.Wait()
}

// stats returns the sum of the routes' counters.
func (r routes) stats() proxy.Stats {
	var sum proxy.Stats
	for _, one := range r {
		sum.Add(one.Server.Stats())
	}
	return sum
}

// reach opens and closes a connection to the engine of every route, without TLS or authentication. The error goes to
// anyone who can connect to the admin port, so it has no address; the log has the address and the cause.
func (r routes) reach(ctx context.Context, timeout time.Duration, log *zap.Logger) error {
	dialer := net.Dialer{Timeout: timeout}
	for _, one := range r {
		conn, err := dialer.DialContext(ctx, one.cfg.Upstream.Network, one.cfg.Upstream.Address)
		if err != nil {
			log.Warn("the engine cannot be reached", zap.String("route", one.cfg.Name), zap.Stringer("upstream", one.cfg.Upstream), zap.Error(err))
			return fmt.Errorf("route %s: the engine cannot be reached", one.cfg.Name)
		}
		_ = conn.Close()
	}
	return nil
}
