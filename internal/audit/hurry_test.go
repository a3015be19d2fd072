package audit_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/dpwatch/dpwatch/internal/audit"
	"github.com/dpwatch/dpwatch/internal/audit/view"
	"github.com/dpwatch/dpwatch/internal/eventually"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
)

// TestWorkerHurries: a long turn in a worker ends soon after a new query begins to wait for its first trials. By the
// worker's clock, which stops before twenty seconds, the turn would never end otherwise.
func TestWorkerHurries(t *testing.T) {
	t.Parallel()
	var released atomic.Pointer[time.Time] // when the worker's clock began to go, at a tenth of the usual speed
	began := time.Now()
	clock := func() time.Time {
		at := released.Load()
		if at == nil {
			return began
		}
		return began.Add(2*time.Second + min(17*time.Second, time.Since(*at)/10))
	}
	registry := prometheus.NewRegistry()
	l := newLedgerRig(t, func(o *audit.Options) { o.Workers, o.TurnTrials, o.Analysis.MaxTrials = 0, 1<<40, 1_000_000_000 })
	stop := l.begin(t)
	defer stop()
	l.restored(t)
	l.worker(t, "one", func(o *audit.WorkerOptions) {
		o.Worker.Slots = 1
		o.Audit.Now, o.Audit.Metrics = clock, registry
	})
	l.Submit(query(longQuery))
	l.until(t, "a long turn", func(s view.Status) bool { return s.Turns.Delivered == 1 && s.Turns.Out == 1 })
	before := executions(t, registry)
	eventually.True(t, "its trials run", func() bool { return executions(t, registry) > before })
	l.Submit(query("SELECT noisy(count(*), 4), max(id) FROM people /*dp_epsilon='0.5'*/"))
	conn := pgtest.Connect(t, l.ledger.DSN)
	eventually.True(t, "the worker is asked to end its turn", func() bool {
		var asked bool
		if err := conn.QueryRow(t.Context(), "SELECT coalesce(bool_or(hurry), false) FROM dpwatch_ledger.turns").Scan(&asked); err != nil {
			t.Fatal(err)
		}
		return asked
	})
	now := time.Now()
	released.Store(&now)
	l.until(t, "trials of the new query", func(s view.Status) bool { return len(s.Audits) == 2 && s.Audits[1].Report.Trials.D0 > 0 })
}

// executions returns the trials that a worker has counted.
func executions(t *testing.T, registry *prometheus.Registry) (n float64) {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == "dpwatch_replays_total" {
				n += m.GetCounter().GetValue()
			}
		}
	}
	return n
}
