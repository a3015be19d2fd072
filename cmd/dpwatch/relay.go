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
	"strings"
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
	listeners  []net.Listener
	admin      net.Listener
	server     *proxy.Server
	queue      *capture.Queue
	supervisor *supervise.Supervisor
}

// auditorGrace is how long the auditor may take to finish when the relay ends.
const auditorGrace = 5 * time.Second

// auditorRate is how many captured queries a second the auditor gets at most. It can take about twice as many before
// it needs a processor of its own, and a statement that comes so often comes again: what a burst drops is counted.
const auditorRate = 1000

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
		MaxRate: auditorRate, Logger: log.Named("supervise"), OnStatus: onStatus,
	})
	r.server, err = proxy.New(proxy.Options{
		Upstream: proxy.Address{Network: c.Proxy.Upstream.Network, Address: c.Proxy.Upstream.Address},
		Capture:  c.Proxy.Capture, Sink: r.queue, Interesting: capture.Mentions(bareNames(c.Privacy.Protected)),
		MaxSessions: c.Proxy.MaxSessions, StartupTimeout: time.Duration(c.Proxy.StartupTimeout),
		DrainTimeout: time.Duration(c.Proxy.DrainTimeout), DialTimeout: time.Duration(c.Proxy.DialTimeout),
		KeepAlive:          time.Duration(c.Proxy.KeepAlive),
		CaptureBudgetBytes: int(c.Proxy.CaptureBudget), MaxStatementBytes: int(c.Proxy.MaxStatement),
		Logger: log.Named("proxy"),
	})
	if err != nil {
		return nil, err
	}
	if err := r.listen(); err != nil {
		r.closeListeners()
		return nil, err
	}
	return r, nil
}

// bareNames returns the names of protected tables without their schemas. Statements whose text holds none of them
// need not go to the auditor: it refuses every query that does not name a protected table itself, also one that reads
// it by a view, a function, a search_path or an EXECUTE. Only a name in an escaped identifier (U&"...") cannot be
// seen in the text, and capture.Mentions lets those through.
func bareNames(tables []string) []string {
	names := make([]string, len(tables))
	for i, t := range tables {
		_, names[i], _ = strings.Cut(t, ".")
	}
	return names
}

func (r *relay) listen() error {
	for _, a := range r.cfg.Proxy.Listen {
		l, err := net.Listen(a.Network, a.Address)
		if err != nil {
			return fmt.Errorf("proxy.listen %s: %w: choose another address or stop what uses it", a, err)
		}
		r.listeners = append(r.listeners, l)
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
	for _, l := range r.listeners {
		_ = l.Close()
	}
	if r.admin != nil {
		_ = r.admin.Close()
	}
}

// Addresses returns where clients connect; port 0 of the configuration is filled in.
func (r *relay) Addresses() []string {
	out := make([]string, len(r.listeners))
	for i, l := range r.listeners {
		out[i] = l.Addr().String()
	}
	return out
}

// Run relays until ctx ends: then sessions drain, the auditor finishes, and the admin port closes last.
func (r *relay) Run(ctx context.Context) error {
	defer r.closeListeners()
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
	err := r.server.Serve(ctx, r.listeners...)
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
