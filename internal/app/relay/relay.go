package relay

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/dpwatch/dpwatch/config"
	"github.com/dpwatch/dpwatch/internal/app/admin"
	"github.com/dpwatch/dpwatch/internal/app/setup"
)

// Relay is the process in front of the engines: the proxy, the supervisor of the auditor process of each engine, and
// the admin port.
type Relay struct {
	// Engines, Ledgers, Queries and Configuration are what the pages and signals use; New sets them.
	Engines       *Engines
	Ledgers       *Ledgers
	Queries       *Queries
	Configuration *Configuration

	cfg    config.Config
	log    *zap.Logger
	routes routes // of all engines
	api    *api
	admin  *admin.Port
}

// SetPages sets what the admin port serves besides metrics, health and the API. It must be called before Run.
func (r *Relay) SetPages(h http.Handler) { r.api.pages = h }

// New returns a Relay with all listeners open, so that an address in use is reported before traffic begins. resolved is
// the configuration c in a form for the auditor processes, which have neither the environment nor the files from which
// c was read. childLog receives the auditors' log lines; onStatus, if not nil, is called with every status of an
// auditor.
func New(env setup.Environment, c config.Config, resolved config.Resolved, log *zap.Logger, childLog io.Writer, onStatus func([]byte)) (*Relay, error) {
	binary, err := env.Executable()
	if err != nil {
		return nil, fmt.Errorf("find the executable of this program: %w", err)
	}
	environment := setup.AuditorEnvironment(env.Getenv)
	auditor := auditorProcess{binary: binary, environment: environment, log: childLog, stdout: env.Stdout, onStatus: onStatus}
	engines, err := newEngines(c, resolved, auditor, log)
	if err != nil {
		return nil, err
	}
	configuration, err := newConfiguration(c, resolved, engines, log)
	if err != nil {
		return nil, err
	}
	ledgers := &Ledgers{configuration: configuration}
	r := &Relay{
		Engines: engines, Ledgers: ledgers, Queries: newQueries(configuration, engines, reader{configuration, binary, environment, log}, log), Configuration: configuration,
		cfg: c, log: log, routes: engines.routes(),
		api: &api{
			engines: engines, ledgers: ledgers, configuration: configuration, routes: engines.routes(),
			dialTimeout: time.Duration(c.Tuning.DialTimeout), log: log,
		},
	}
	if err := r.listen(); err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

func (r *Relay) listen() error {
	if err := r.routes.listen(); err != nil {
		return err
	}
	var err error
	r.admin, err = admin.New(r.cfg.Admin, r.log, r.api.handler)
	return err
}

func (r *Relay) close() {
	r.routes.close()
	if r.admin != nil {
		r.admin.Close()
	}
}

// Addresses returns the addresses for clients, with the actual port in place of port 0.
func (r *Relay) Addresses() []string { return r.routes.addresses() }

// AdminAddresses returns the addresses of the admin port.
func (r *Relay) AdminAddresses() []string { return r.admin.Addresses() }

// Routes returns the number of routes.
func (r *Relay) Routes() int { return len(r.routes) }

// Run relays until ctx ends or a listener fails. Then sessions drain, the auditor finishes, and the admin port closes.
func (r *Relay) Run(ctx context.Context) error {
	defer r.close()
	defer r.Queries.end()
	defer context.AfterFunc(ctx, func() { r.api.draining.Store(true) })()
	auditCtx, stopAudit := context.WithCancel(context.WithoutCancel(ctx))
	defer stopAudit()
	var group errgroup.Group
	if r.cfg.Proxy.Capture {
		r.Engines.run(auditCtx, &group)
	}
	r.admin.Serve(&group)
	err := r.routes.serve(ctx)
	r.log.Info("sessions drained", zap.Error(err))
	stopAudit()
	r.admin.Shutdown(setup.AuditorGrace)
	_ = group.Wait()
	return err
}
