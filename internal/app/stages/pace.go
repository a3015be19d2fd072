package stages

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/config"
	"github.com/dpwatch/dpwatch/internal/audit/budget"
	"github.com/dpwatch/dpwatch/internal/sqlstate"
	"github.com/dpwatch/dpwatch/replay"
	"github.com/dpwatch/dpwatch/replay/throttle"
)

// sharedShare is the default share of the time in which a single connection replays, if clients use the same server.
const sharedShare = 0.1

// NewGate returns the gate that the configuration describes.
func NewGate(c config.Config) *throttle.Gate {
	opt := throttle.Options{
		Sessions: c.Audit.Sessions, Share: c.Audit.Share,
		Guard: throttle.Guard{DSN: c.Shadow.DSN.Reveal(), MaxLag: time.Duration(c.Audit.MaxLag)},
	}
	if AutomaticPace(c) {
		opt.Share, opt.Default = sharedShare, "audit.share 0.1 until it is known whether the shadow database is on the server that clients use"
	}
	if opt.Sessions == 0 {
		opt.Sessions = auditConnections * max(1, c.Audit.Workers)
	}
	for _, w := range c.Audit.Windows {
		opt.Windows = append(opt.Windows, throttle.Window{From: w.From, To: w.To, Zone: w.Zone})
	}
	return throttle.New(opt)
}

// Pace returns the Pace of replays: the gate, behind the budget if there is one.
func Pace(gate *throttle.Gate, budget *budget.Budget) replay.Pace {
	if budget == nil {
		return gate
	}
	return budget
}

// AutomaticPace reports whether the configuration sets no pace of trials.
func AutomaticPace(c config.Config) bool {
	return c.Audit.Share == 0 && c.Audit.Sessions == 0
}

// clientServers returns the servers that clients use, as far as the configuration names them.
func clientServers(c config.Config) []throttle.Other {
	var out []throttle.Other
	for _, route := range c.Proxy.AllRoutes() {
		out = append(out, throttle.Other{Key: "proxy.upstream", Network: route.Upstream.Network, Address: route.Upstream.Address})
	}
	for _, o := range []throttle.Other{{Key: "privacy.catalog", DSN: c.Privacy.Catalog.Reveal()}, {Key: "neighbours.source", DSN: c.Neighbours.Source.Reveal()}} {
		if o.DSN != "" {
			out = append(out, o)
		}
	}
	return out
}

// ServerOfClients returns the key of a server that clients use and that has the shadow database, too; "" = none has, or
// it could not be checked, which is the error.
func ServerOfClients(ctx context.Context, c config.Config) (key string, err error) {
	return throttle.Shared(ctx, c.Shadow.DSN.Reveal(), clientServers(c))
}

// DefaultPace returns the default share of the time, 0 for no limit, and its reason. An error reports that a server
// could not be checked; share and why are valid nevertheless.
func DefaultPace(ctx context.Context, c config.Config) (share float64, why string, err error) {
	key, err := ServerOfClients(ctx, c)
	switch {
	case key != "":
		return sharedShare, "audit.share 0.1: the shadow database is on the server of " + key, nil
	case err != nil: // connection errors name hosts and users: allowed in the log, not in the open API
		return sharedShare, "audit.share 0.1: it could not be checked whether the shadow database is on the server that clients use (the log has the reason); set audit.share", err
	}
	return 0, "no limit: the shadow database is not on a server that the configuration names for clients", nil
}

// repeatDefault is the interval at which ApplyDefaultPace retries after an error.
const repeatDefault = time.Minute

// ApplyDefaultPace sets the gate's default pace unless the configuration sets one. It retries until every server could
// be checked or ctx ends.
func ApplyDefaultPace(ctx context.Context, c config.Config, gate *throttle.Gate, log *zap.Logger) {
	if !AutomaticPace(c) {
		return
	}
	last := ""
	for ctx.Err() == nil {
		share, why, err := DefaultPace(ctx, c)
		if ctx.Err() != nil {
			return
		}
		if why != last {
			gate.SetShare(share, why)
			log.Info("pace of replays", zap.String("default", why), zap.Error(sqlstate.Withhold(err)))
			last = why
		}
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(repeatDefault):
		}
	}
}
