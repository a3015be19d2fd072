package auditor

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"runtime/debug"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/common/expfmt"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/dpwatch/dpwatch/config"
	"github.com/dpwatch/dpwatch/internal/app/admin"
	"github.com/dpwatch/dpwatch/internal/app/setup"
	"github.com/dpwatch/dpwatch/internal/app/stages"
	"github.com/dpwatch/dpwatch/internal/audit"
	"github.com/dpwatch/dpwatch/internal/ledger"
	"github.com/dpwatch/dpwatch/replay/throttle"
)

// heartbeatEvery returns the interval of a worker's heartbeats: several may be lost before its turns are taken back.
func heartbeatEvery(c config.Config) time.Duration {
	return min(time.Duration(c.Tuning.RescueAfter)/12, 5*time.Second)
}

// RunWorker runs turns that the auditors of the engines hand out through the ledger, of each engine as many at a time
// as slots, until ctx is done or a worker fails. 0 slots are as many as audit.workers.
func RunWorker(ctx context.Context, c config.Config, slots int, log *zap.Logger) error {
	log = log.Named("worker")
	all := c.AllEngines()
	process := c // what concerns the process: the memory of all engines
	process.Audit.Memory = 0
	for _, one := range all {
		process.Audit.Memory += one.Audit.Memory
	}
	debug.SetMemoryLimit(int64(process.Audit.Memory))
	registry, err := newRegistry(process)
	if err != nil {
		return err
	}
	var workers []*engineWorker
	for _, one := range all {
		labelled := prometheus.Registerer(registry)
		if len(all) > 1 {
			labelled = prometheus.WrapRegistererWith(prometheus.Labels{"engine": one.EngineName()}, registry)
		}
		w, err := newEngineWorker(one, slots, log, labelled)
		if err != nil {
			return fmt.Errorf("engine %s: %w", one.EngineName(), err)
		}
		workers = append(workers, w)
	}
	port, err := admin.New(c.Admin, log, func(refused prometheus.Collector) http.Handler {
		return workerHandler(workers, registry, refused, log)
	})
	if err != nil {
		return err
	}
	defer port.Close()
	for _, w := range workers {
		log.Info("dpwatch worker is up", zap.String("version", setup.Version), zap.String("dp.engine", w.cfg.EngineName()), zap.Int("slots", w.cfg.Audit.Workers), zap.Strings("admin", port.Addresses()))
	}
	var serving errgroup.Group
	port.Serve(&serving)
	running, runCtx := errgroup.WithContext(ctx)
	for _, w := range workers {
		running.Go(func() error { return w.run(runCtx, log) })
	}
	err = running.Wait()
	port.Shutdown(setup.AuditorGrace)
	_ = serving.Wait()
	return err
}

// engineWorker is the worker of one engine.
type engineWorker struct {
	*audit.Worker
	cfg  config.Config
	gate *throttle.Gate
}

func newEngineWorker(c config.Config, slots int, log *zap.Logger, registry prometheus.Registerer) (*engineWorker, error) {
	if c.LedgerDSN() == "" {
		return nil, errors.New("a worker takes its turns from the ledger, and there is none: set ledger.dsn or neighbours.target, as for run")
	}
	if slots == 0 {
		slots = max(1, c.Audit.Workers)
	}
	c.Audit.Workers = slots
	gate := stages.NewGate(c)
	opt, err := auditorOptions(c, gate, log, registry)
	if err != nil {
		return nil, err
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	worker, err := audit.NewWorker(audit.WorkerOptions{
		Audit: opt, Ledger: openWorkerLedger(c, slots), Heartbeat: heartbeatEvery(c),
		Worker: ledger.Worker{ID: ledger.NewWorkerID(host), Engine: c.EngineName(), Host: host, Version: setup.Version, Slots: slots},
	})
	return &engineWorker{worker, c, gate}, err
}

// run runs turns until ctx is done.
func (w *engineWorker) run(ctx context.Context, log *zap.Logger) error {
	go contain(log, "set the pace", func() { stages.ApplyDefaultPace(ctx, w.cfg, w.gate, log) })
	return w.Run(ctx)
}

// openWorkerLedger returns a function that opens the ledger, which run or migrate has created.
func openWorkerLedger(c config.Config, slots int) func(context.Context) (*ledger.Ledger, error) {
	o, _ := setup.LedgerOptions(c)
	o.Connections += int32(min(slots, 1000)) //nolint:gosec // bounded
	return func(ctx context.Context) (*ledger.Ledger, error) {
		l, err := ledger.Open(ctx, o)
		if err != nil {
			return nil, err
		}
		if err := setup.CheckHidden(ctx, c, l); err != nil {
			l.Close()
			return nil, err
		}
		return l, nil
	}
}

// workerHandler returns the handler of a worker's admin port: liveness, readiness and metrics.
func workerHandler(workers []*engineWorker, registry *prometheus.Registry, refused prometheus.Collector, log *zap.Logger) http.Handler {
	registry.MustRegister(collectors.NewGoCollector(), refused) // panics on a duplicate name, in the first test
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		for _, worker := range workers {
			if err := worker.Ready(); err != nil {
				http.Error(w, err.Error(), http.StatusServiceUnavailable)
				return
			}
		}
		w.WriteHeader(http.StatusOK)
	})
	mux.HandleFunc("GET /api/status", func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "this is a worker: the status is that of the process that runs dpwatch run", http.StatusNotFound)
	})
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		text, err := admin.MetricsText(registry)
		if err != nil { // the other metrics are served
			log.Warn("some metrics cannot be gathered", zap.Error(err))
		}
		w.Header().Set("Content-Type", string(expfmt.NewFormat(expfmt.TypeTextPlain)))
		_, _ = w.Write(text)
	})
	return mux
}
