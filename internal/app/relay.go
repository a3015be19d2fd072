package app

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/dpwatch/dpwatch/config"
	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/supervise"
	"github.com/dpwatch/dpwatch/proxy"
)

// Relay is the small process in front of the engine: the proxy, the supervisor of the auditor, the admin port.
type Relay struct {
	cfg        config.Config
	log        *zap.Logger
	routes     []*route
	admin      *adminPort
	queue      *capture.Queue
	supervisor *supervise.Supervisor
	draining   atomic.Bool
}

// auditorGrace is how long the auditor may take to finish when the relay ends.
const auditorGrace = 5 * time.Second

// NewRelay opens every listener, so that an address in use is told before anything runs. resolved is c for the auditor, which has
// neither the Environment nor the files that c was read with. childLog takes the auditor's log lines; onStatus, if not nil,
// sees every status of the auditor.
func NewRelay(env Environment, c config.Config, resolved config.Resolved, log *zap.Logger, childLog io.Writer, onStatus func([]byte)) (*Relay, error) {
	r := &Relay{cfg: c, log: log, queue: capture.NewQueue(c.Proxy.QueueLength, int(c.Proxy.QueueBytes))}
	greeting, err := resolved.Encode()
	if err != nil {
		return nil, fmt.Errorf("greet the auditor: %w", err)
	}
	binary, err := env.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program's own file: %w", err)
	}
	r.supervisor = supervise.New(supervise.Options{
		Command: func() *exec.Cmd {
			cmd := exec.Command(binary, "auditor")
			cmd.Stderr = childLog
			cmd.Env = auditorEnvironment(env.Getenv)
			return cmd
		},
		Hello: greeting, Queue: r.queue, HangLimit: time.Duration(c.Proxy.AuditorHangLimit), ParseTimeout: time.Duration(c.Audit.ParseTimeout), StopGrace: auditorGrace,
		MaxRate: c.Proxy.CaptureRate, Logger: log.Named("supervise"), OnStatus: onStatus,
	})
	for i := range c.Proxy.AllRoutes() {
		one, err := newRoute(&c, i, r.queue, log)
		if err != nil {
			return nil, err
		}
		if err := one.check(log); err != nil {
			return nil, err
		}
		r.routes = append(r.routes, one)
	}
	if err := r.listen(); err != nil {
		r.closeListeners()
		return nil, err
	}
	return r, nil
}

// interestingNames returns the names, without their schemas, of protected tables and, where the engine's catalog tells which
// functions read them, of declared functions. Statements whose text holds none of them need not go to the auditor: what
// it audits names a relation or a function of the lists; a view over a protected table is to be listed as well (README,
// limits). An EXECUTE is judged by the statement that was prepared. Only a name in an escaped identifier (U&"...") cannot
// be seen in the text, and capture.Mentions lets those through.
func interestingNames(c *config.Config) []string {
	listed := slices.Clone(c.Privacy.Protected)
	if c.Privacy.Catalog != "" {
		listed = append(listed, c.Claims.SafeFunctions...)
		for _, f := range c.Claims.Functions {
			listed = append(listed, f.Name)
		}
	}
	return bareNames(listed)
}

// bareNames returns names without their schemas.
func bareNames(names []string) []string {
	bare := slices.Clone(names)
	for i, name := range names {
		if _, rest, qualified := strings.Cut(name, "."); qualified {
			bare[i] = rest
		}
	}
	return bare
}

func (r *Relay) listen() error {
	for _, one := range r.routes {
		if err := one.listen(); err != nil {
			return err
		}
	}
	var err error
	r.admin, err = newAdminPort(r)
	return err
}

func (r *Relay) closeListeners() {
	for _, one := range r.routes {
		one.close()
	}
	if r.admin != nil {
		r.admin.close()
	}
}

// Addresses returns where clients connect; port 0 of the configuration is filled in.
func (r *Relay) Addresses() []string {
	var out []string
	for _, one := range r.routes {
		for _, l := range one.listeners {
			out = append(out, l.Addr().String())
		}
	}
	return out
}

// AdminAddresses returns where the admin port is served.
func (r *Relay) AdminAddresses() []string { return r.admin.addresses() }

// Routes returns how many engines the relay stands in front of.
func (r *Relay) Routes() int { return len(r.routes) }

// AuditorStarts returns how often the auditor process was started.
func (r *Relay) AuditorStarts() uint64 { return r.supervisor.Stats().Starts }

// serve runs every route until ctx ends or one of them fails, which ends the others in order.
func (r *Relay) serve(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, one := range r.routes {
		group.Go(func() error { return one.server.Serve(ctx, one.listeners...) })
	}
	return group.Wait()
}

// stats sums what all routes count.
func (r *Relay) stats() proxy.Stats {
	var sum proxy.Stats
	for _, one := range r.routes {
		sum.Add(one.server.Stats())
	}
	return sum
}

// Run relays until ctx ends: then sessions drain, the auditor finishes, and the admin port closes last.
func (r *Relay) Run(ctx context.Context) error {
	defer r.closeListeners()
	defer context.AfterFunc(ctx, func() { r.draining.Store(true) })()
	auditCtx, stopAudit := context.WithCancel(context.WithoutCancel(ctx))
	defer stopAudit()
	var group errgroup.Group
	if r.cfg.Proxy.Capture {
		group.Go(func() error { return r.supervisor.Run(auditCtx) })
	}
	r.admin.serve(&group)
	err := r.serve(ctx)
	r.log.Info("sessions drained", zap.Error(err))
	stopAudit()
	r.admin.shutdown(auditorGrace)
	_ = group.Wait()
	return err
}
