package audit_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/alert"
	"github.com/dpwatch/dpwatch/internal/audit"
	"github.com/dpwatch/dpwatch/internal/eventually"
	"github.com/dpwatch/dpwatch/internal/ledger"
	"github.com/dpwatch/dpwatch/internal/longtest"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
)

// TestRecordOnly: two processes capture the queries of one engine. The first one audits a query that only the second
// one captured; every statement is counted once. When the first one loses the engine, the second one has its evidence,
// and audits what it captures from then on.
func TestRecordOnly(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	var l *ledgerRig
	l = newLedgerRig(t, func(o *audit.Options) {
		open := func(ctx context.Context) (*ledger.Ledger, error) { return ledger.Open(ctx, l.ledger) }
		first := o.Ledger
		o.Ledger = func(ctx context.Context) (*ledger.Engine, error) {
			store, err := open(ctx)
			if err != nil {
				return first(ctx) // it migrates
			}
			engine, err := store.Acquire(ctx, "engine")
			if err != nil {
				store.Close()
			}
			return engine, err
		}
		o.Recorder = func(ctx context.Context) (*ledger.Recorder, error) {
			store, err := open(ctx)
			if err != nil {
				return nil, err
			}
			return store.Recorder(ctx, "engine", ledger.Process{Host: "second", Configuration: "b"})
		}
		o.Analysis.MaxTrials = 1500
		o.Process, o.RetryAfter = ledger.Process{Host: "first", Configuration: "a"}, 500*time.Millisecond
	})
	over := make(chan error, 1)
	go func() { over <- l.Run(t.Context()) }()
	l.restored(t)
	opt := l.opt
	opt.Metrics, opt.OnFinding, opt.Process = prometheus.NewRegistry(), func(alert.Finding) {}, ledger.Process{Host: "second", Configuration: "b"}
	second, err := audit.New(opt)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- second.Run(ctx) }()
	eventually.True(t, "the second process records", func() bool { s := second.Status().Ledger; return s.Holder != nil && s.Holder.Host == "first" }, func() any { return second.Status().Ledger })
	if s := second.Status().Ledger; s.Restored || !s.OtherConfiguration {
		t.Errorf("status of the second process: %+v", s)
	}

	offer := func(a *audit.Auditor, sql string, n int) {
		for range n {
			a.Offer(query(sql))
		}
	}
	offer(second, leakyQuery, 1)
	offer(second, honestQuery, 50)
	offer(second, "SELECT 1", 3)
	offer(l.Auditor, honestQuery, 20)
	conn := pgtest.Connect(t, l.ledger.DSN)
	exactly := func(executions, skipped int) {
		t.Helper()
		eventually.True(t, "all statements are counted", func() bool { n, m := l.counted(t, conn); return n == executions && m == skipped },
			func() any { n, m := l.counted(t, conn); return []int{n, m} })
	}
	exactly(71, 3)
	violations := func(a *audit.Auditor) (n int) {
		for _, e := range a.Status().Audits {
			if e.Verdict == string(analysis.Violation) {
				n++
			}
		}
		return n
	}
	eventually.True(t, "the first process has saved the violation", func() (saved bool) {
		err := conn.QueryRow(t.Context(), "SELECT count(*) = 1 FROM dpwatch_ledger.audits WHERE verdict = 'violation'").Scan(&saved)
		return err == nil && saved
	}, func() any { return l.Status() })
	eventually.True(t, "the first process reports the second one", func() bool {
		s := l.Status().Ledger
		return len(s.Recorders) == 1 && s.Recorders[0].Host == "second" && s.OtherConfiguration
	}, func() any { return l.Status().Ledger })
	if n := len(second.Status().Audits); n != 0 {
		t.Errorf("%d audits in the second process, which only records", n)
	}

	pgtest.Exec(t, l.ledger.DSN, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid IN (SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted) AND datname = current_database() AND query LIKE '%INSERT INTO terms%'")
	if err := <-over; !errors.Is(err, ledger.ErrReplaced) {
		t.Errorf("the first process: %v, want ErrReplaced", err)
	}
	eventually.True(t, "the second process has the engine", func() bool { s := second.Status().Ledger; return s.Restored && s.Holder == nil }, func() any { return second.Status().Ledger })
	if violations(second) != 1 {
		t.Errorf("the second process has no violation: %+v", second.Status().Audits)
	}
	offer(second, longQuery, 9)
	exactly(80, 3)
	eventually.True(t, "the second process audits", func() bool {
		for _, e := range second.Status().Audits {
			if e.Seen == 9 && e.Report.Trials.D0 > 0 {
				return true
			}
		}
		return false
	}, func() any { return second.Status() })
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
