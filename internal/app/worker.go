package app

import (
	"context"
	"errors"
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
	"github.com/dpwatch/dpwatch/internal/audit"
	"github.com/dpwatch/dpwatch/internal/ledger"
)

// heartbeatEvery returns the interval of a worker's heartbeats: several may be lost before its turns are taken back.
func heartbeatEvery(c config.Config) time.Duration {
	return min(time.Duration(c.Audit.RescueAfter)/12, 5*time.Second)
}

// CheckWorkers returns an error if no process would run the audits.
func CheckWorkers(c config.Config) error {
	switch {
	case c.Audit.Workers < 0:
		return errors.New("the number of workers must not be negative")
	case c.Audit.Workers == 0 && c.LedgerDSN() == "":
		return errors.New("without workers in this process (audit.workers, --workers) others must replay, and they take their turns from a ledger: set ledger.dsn or neighbours.target")
	}
	return nil
}

// RunWorker runs turns that the auditor of the engine hands out through the ledger, as many at a time as slots, until ctx is
// done. 0 slots are as many as audit.workers.
func RunWorker(ctx context.Context, c config.Config, slots int, log *zap.Logger) error {
	if c.LedgerDSN() == "" {
		return errors.New("a worker takes its turns from the ledger, and there is none: set ledger.dsn or neighbours.target, as for run")
	}
	if slots == 0 {
		slots = max(1, c.Audit.Workers)
	}
	c.Audit.Workers = slots
	log = log.Named("worker")
	debug.SetMemoryLimit(int64(c.Audit.Memory))
	registry, err := newRegistry(c)
	if err != nil {
		return err
	}
	gate := newGate(c)
	opt, err := auditorOptions(c, gate, log, registry)
	if err != nil {
		return err
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	worker, err := audit.NewWorker(audit.WorkerOptions{
		Audit: opt, Ledger: openWorkerLedger(c, slots), Heartbeat: heartbeatEvery(c),
		Worker: ledger.Worker{ID: ledger.NewWorkerID(host), Engine: c.EngineName(), Host: host, Version: Version, Slots: slots},
	})
	if err != nil {
		return err
	}
	admin, err := newAdminPort(c.Admin, log, func(refused prometheus.Collector) http.Handler {
		return workerHandler(worker, registry, refused, log)
	})
	defer admin.close()
	if err != nil {
		return err
	}
	log.Info("dpwatch worker is up", zap.String("version", Version), zap.Int("slots", slots), zap.Strings("admin", admin.addresses()))
	var group errgroup.Group
	admin.serve(&group)
	go applyDefaultPace(ctx, c, gate, log)
	err = worker.Run(ctx)
	admin.shutdown(auditorGrace)
	_ = group.Wait()
	return err
}

// openWorkerLedger returns a function that opens the ledger, which run or migrate has created.
func openWorkerLedger(c config.Config, slots int) func(context.Context) (*ledger.Ledger, error) {
	o, _ := ledgerOptions(c)
	o.Connections += int32(min(slots, 1000)) //nolint:gosec // bounded
	return func(ctx context.Context) (*ledger.Ledger, error) {
		l, err := ledger.Open(ctx, o)
		if err != nil {
			return nil, err
		}
		if err := hidden(ctx, c, l); err != nil {
			l.Close()
			return nil, err
		}
		return l, nil
	}
}

// workerHandler returns the handler of a worker's admin port: liveness, readiness and metrics.
func workerHandler(worker *audit.Worker, registry *prometheus.Registry, refused prometheus.Collector, log *zap.Logger) http.Handler {
	registry.MustRegister(collectors.NewGoCollector(), refused) // panics on a duplicate name, in the first test
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if err := worker.Ready(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		w.WriteHeader(http.StatusOK)
	})
	mux.HandleFunc("GET /api/status", func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "this is a worker: the status is that of the process that runs dpwatch run", http.StatusNotFound)
	})
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		text, err := metricsText(registry)
		if err != nil { // the other metrics are served
			log.Warn("some metrics cannot be gathered", zap.Error(err))
		}
		w.Header().Set("Content-Type", string(expfmt.NewFormat(expfmt.TypeTextPlain)))
		_, _ = w.Write(text)
	})
	return mux
}
