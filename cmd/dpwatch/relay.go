package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
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

// hello is what the relay tells the auditor first.
type hello struct {
	File string `json:"file"`
	YAML string `json:"yaml"`
}

// relay is the small process in front of the engine: the proxy, the supervisor of the auditor, the admin port.
type relay struct {
	cfg        config.Config
	log        *zap.Logger
	routes     []*route
	admin      net.Listener
	queue      *capture.Queue
	supervisor *supervise.Supervisor
	draining   atomic.Bool
}

// auditorGrace is how long the auditor may take to finish when the relay ends.
const auditorGrace = 5 * time.Second

// newRelay opens every listener, so that an address in use is told before anything runs. childLog takes the
// auditor's log lines; onStatus, if not nil, sees every status of the auditor.
func newRelay(env environment, c config.Config, h hello, log *zap.Logger, childLog io.Writer, onStatus func([]byte)) (*relay, error) {
	r := &relay{cfg: c, log: log, queue: capture.NewQueue(c.Proxy.QueueLength, int(c.Proxy.QueueBytes))}
	greeting, err := json.Marshal(h)
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
			return cmd
		},
		Hello: greeting, Queue: r.queue, HangLimit: time.Duration(c.Proxy.AuditorHangLimit), StopGrace: auditorGrace,
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

func (r *relay) listen() error {
	for _, one := range r.routes {
		if err := one.listen(); err != nil {
			return err
		}
	}
	if a := r.cfg.Admin.Listen; !a.IsZero() {
		l, err := net.Listen(a.Network, a.Address)
		if err != nil {
			return fmt.Errorf("admin.listen %s: %w: choose another address or stop what uses it", a, err)
		}
		r.admin = l
	}
	return nil
}

func (r *relay) closeListeners() {
	for _, one := range r.routes {
		one.close()
	}
	if r.admin != nil {
		_ = r.admin.Close()
	}
}

// Addresses returns where clients connect; port 0 of the configuration is filled in.
func (r *relay) Addresses() []string {
	var out []string
	for _, one := range r.routes {
		for _, l := range one.listeners {
			out = append(out, l.Addr().String())
		}
	}
	return out
}

// adminAddress returns where metrics and status are served, "" for nowhere; port 0 of the configuration is filled in.
func (r *relay) adminAddress() string {
	if r.admin == nil {
		return ""
	}
	return r.admin.Addr().String()
}

// serve runs every route until ctx ends or one of them fails, which ends the others in order.
func (r *relay) serve(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, one := range r.routes {
		group.Go(func() error { return one.server.Serve(ctx, one.listeners...) })
	}
	return group.Wait()
}

// stats sums what all routes count.
func (r *relay) stats() proxy.Stats {
	var sum proxy.Stats
	for _, one := range r.routes {
		sum.Add(one.server.Stats())
	}
	return sum
}

// Run relays until ctx ends: then sessions drain, the auditor finishes, and the admin port closes last.
func (r *relay) Run(ctx context.Context) error {
	defer r.closeListeners()
	defer context.AfterFunc(ctx, func() { r.draining.Store(true) })()
	auditCtx, stopAudit := context.WithCancel(context.WithoutCancel(ctx))
	defer stopAudit()
	var group errgroup.Group
	if r.cfg.Proxy.Capture {
		group.Go(func() error { return r.supervisor.Run(auditCtx) })
	}
	web := &http.Server{Handler: r.handler(), ReadHeaderTimeout: 5 * time.Second}
	if r.admin != nil {
		group.Go(func() error {
			if err := web.Serve(r.admin); !errors.Is(err, http.ErrServerClosed) {
				r.log.Error("admin port", zap.Error(err)) // traffic goes on without it
			}
			return nil
		})
	}
	err := r.serve(ctx)
	r.log.Info("sessions drained", zap.Error(err))
	stopAudit()
	stopWeb := time.AfterFunc(auditorGrace, func() { _ = web.Close() })
	defer stopWeb.Stop()
	shutdown, cancel := context.WithTimeout(context.WithoutCancel(ctx), auditorGrace)
	defer cancel()
	_ = web.Shutdown(shutdown)
	_ = group.Wait()
	return err
}
