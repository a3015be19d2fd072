package relay

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/dpwatch/dpwatch/config"
	"github.com/dpwatch/dpwatch/internal/app/admin"
	"github.com/dpwatch/dpwatch/internal/app/setup"
	"github.com/dpwatch/dpwatch/proxy"
)

// Relay is the process in front of the engines: the proxy, the supervisor of the auditor process of each engine, and
// the admin port.
type Relay struct {
	cfg      config.Config
	log      *zap.Logger
	engines  []*auditedEngine
	routes   []*route // of all engines
	admin    *admin.Port
	draining atomic.Bool
	reading  sync.Mutex // of the ledger, for a request
	pages    http.Handler

	binary     string // of the processes for pages, and their environment
	childEnv   []string
	resolved   atomic.Pointer[json.RawMessage] // current for another process; see config.Resolved.Encode
	detailing  chan struct{}                   // guards details; holds a value while they are read
	details    map[string]keptDetails
	recent     recent
	reproduced atomic.Pointer[string] // id of the audit that is reproduced
	ending     context.Context        // ends with the relay
	end        context.CancelFunc

	current  atomic.Pointer[config.Config] // what the auditors run with: cfg until the first Reload
	reloaded atomic.Pointer[reloads]
	loading  sync.Mutex                                     // of a Reload
	read     func() (config.Config, config.Resolved, error) // for POST /api/reload; nil = there is no file
}

// SetRead sets how the configuration is read again for POST /api/reload.
func (r *Relay) SetRead(read func() (config.Config, config.Resolved, error)) { r.read = read }

// SetPages sets what the admin port serves besides metrics, health and the API. It must be called before Run.
func (r *Relay) SetPages(h http.Handler) { r.pages = h }

// New returns a Relay with all listeners open, so that an address in use is reported before traffic begins. resolved is
// the configuration c in a form for the auditor processes, which have neither the environment nor the files from which
// c was read. childLog receives the auditors' log lines; onStatus, if not nil, is called with every status of an
// auditor.
func New(env setup.Environment, c config.Config, resolved config.Resolved, log *zap.Logger, childLog io.Writer, onStatus func([]byte)) (*Relay, error) {
	r := &Relay{cfg: c, log: log, detailing: make(chan struct{}, 1), details: map[string]keptDetails{}, childEnv: setup.AuditorEnvironment(env.Getenv)}
	r.ending, r.end = context.WithCancel(context.Background())
	r.current.Store(&c)
	r.reloaded.Store(&reloads{last: time.Now()})
	binary, err := env.Executable()
	if err != nil {
		return nil, fmt.Errorf("find the executable of this program: %w", err)
	}
	r.binary = binary
	all, whole := c.AllEngines(), resolved
	for _, one := range all {
		auditor := auditorProcess{binary: binary, environment: r.childEnv, log: childLog, onStatus: onStatus}
		if setup.HasStdout(one) {
			auditor.stdout = env.Stdout
		}
		of := log
		if len(all) > 1 {
			resolved, of = resolved.ForEngine(one.EngineName()), log.With(zap.String("dp.engine", one.EngineName()))
		}
		engine, err := newAuditedEngine(one, resolved, auditor, of)
		if err != nil {
			return nil, err
		}
		r.engines = append(r.engines, engine)
		r.routes = append(r.routes, engine.routes...)
	}
	if err := r.setPages(c, whole); err != nil {
		return nil, err
	}
	if err := r.listen(); err != nil {
		r.closeListeners()
		return nil, err
	}
	return r, nil
}

// setPages sets the configuration for pages and the processes that read audits for them.
func (r *Relay) setPages(c config.Config, resolved config.Resolved) error {
	text, err := resolved.Encode()
	if err != nil {
		return fmt.Errorf("encode the configuration for pages: %w", err)
	}
	r.resolved.Store((*json.RawMessage)(&text))
	for _, e := range r.engines {
		if c.Log.ShowsSQL() {
			e.shown.mayHold.Store(true)
		}
	}
	return nil
}

func (r *Relay) listen() error {
	for _, one := range r.routes {
		if err := one.listen(); err != nil {
			return err
		}
	}
	var err error
	r.admin, err = admin.New(r.cfg.Admin, r.log, r.handler)
	return err
}

func (r *Relay) closeListeners() {
	for _, one := range r.routes {
		one.close()
	}
	if r.admin != nil {
		r.admin.Close()
	}
}

// Addresses returns the addresses for clients, with the actual port in place of port 0.
func (r *Relay) Addresses() []string {
	var out []string
	for _, one := range r.routes {
		out = append(out, admin.Addresses(one.listeners)...)
	}
	return out
}

// AdminAddresses returns the addresses of the admin port.
func (r *Relay) AdminAddresses() []string { return r.admin.Addresses() }

// Routes returns the number of routes.
func (r *Relay) Routes() int { return len(r.routes) }

// AuditorStarts returns the number of starts of all auditor processes.
func (r *Relay) AuditorStarts() uint64 {
	var n uint64
	for _, e := range r.engines {
		n += e.supervisor.Stats().Starts
	}
	return n
}

// serve runs every route until ctx ends or one of them fails; then all drain.
func (r *Relay) serve(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, one := range r.routes {
		group.Go(func() error { return one.Server.Serve(ctx, one.listeners...) })
	}
	return group.Wait()
}

// stats returns the sum of all routes' counters.
func (r *Relay) stats() proxy.Stats { return sumStats(r.routes) }

// Run relays until ctx ends or a listener fails. Then sessions drain, the auditor finishes, and the admin port closes.
func (r *Relay) Run(ctx context.Context) error {
	defer r.closeListeners()
	defer r.end()
	defer context.AfterFunc(ctx, func() { r.draining.Store(true) })()
	auditCtx, stopAudit := context.WithCancel(context.WithoutCancel(ctx))
	defer stopAudit()
	var group errgroup.Group
	for _, e := range r.engines {
		if r.cfg.Proxy.Capture {
			group.Go(func() error { return e.supervisor.Run(auditCtx) })
		}
	}
	r.admin.Serve(&group)
	err := r.serve(ctx)
	r.log.Info("sessions drained", zap.Error(err))
	stopAudit()
	r.admin.Shutdown(setup.AuditorGrace)
	_ = group.Wait()
	return err
}
