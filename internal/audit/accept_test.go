package audit_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/dpwatch/dpwatch/internal/audit"
	"github.com/dpwatch/dpwatch/internal/audit/view"
	"github.com/dpwatch/dpwatch/internal/eventually"
	"github.com/dpwatch/dpwatch/internal/finding"
	"github.com/dpwatch/dpwatch/internal/ledger"
	"github.com/dpwatch/dpwatch/internal/longtest"
)

// operator uses the ledger of a rig as the commands do.
func (l *ledgerRig) operator(t *testing.T, f func(context.Context, *ledger.Ledger) error) {
	t.Helper()
	store, err := ledger.Open(t.Context(), l.ledger)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if err := f(t.Context(), store); err != nil {
		t.Fatal(err)
	}
}

func (l *ledgerRig) accept(t *testing.T, key string, until time.Time) {
	t.Helper()
	l.operator(t, func(ctx context.Context, store *ledger.Ledger) error {
		return store.Actions.Accept(ctx, "engine", key, "ann", "known", until)
	})
}

// actions waits until the operators' actions on an audit are these, the latest first.
func (l *ledgerRig) actions(t *testing.T, key string, want ...string) {
	t.Helper()
	var got []string
	eventually.True(t, "the actions in the ledger", func() bool {
		l.operator(t, func(ctx context.Context, store *ledger.Ledger) error {
			found, err := store.Stored(ctx, key, 1)
			if err == nil {
				got = nil
				for _, a := range found[0].Actions {
					got = append(got, a.Action+" "+a.Operator+" "+a.Reason)
				}
			}
			return err
		})
		return cmp.Equal(want, got)
	}, func() any { return cmp.Diff(want, got) })
}

// alerts waits for a number of alerts of violations.
func (e *engineRig) alerts(t *testing.T, want int) {
	t.Helper()
	eventually.True(t, "the alerts", func() bool { return e.kinds()[finding.Violation] >= want }, func() any { return e.kinds() })
	if n := e.kinds()[finding.Violation]; n != want {
		t.Errorf("%d alerts, want %d", n, want)
	}
}

// TestAccept: an accepted violation stays one, but sends no alert, also after a restart; another engine ends the
// acceptance, and so do an operator and the date. Each end sends the alert again.
func TestAccept(t *testing.T) {
	t.Parallel()
	var ahead atomic.Int64
	var registry *prometheus.Registry
	now := func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	e := newEngineRig(t, func(o *audit.Options) {
		o.Now = now
		registry = prometheus.NewRegistry()
		o.Metrics = registry
	})
	e.deploy(t, brokenNoise)
	stop := e.begin(t)
	e.Submit(query(engineQuery))
	found := e.decidedOn(t, 0)
	e.alerts(t, 1)
	eventually.True(t, "the violation is in the ledger", func() bool { return e.Status().Ledger.Unsaved == 0 }, func() any { return e.Status() })
	accepted := func(want bool) view.Entry {
		t.Helper()
		return e.wait(t, "the acceptance", func(x view.Entry) bool { return (x.Accepted != nil) == want && x.State == view.Decided })
	}
	e.accept(t, found.Key, now().Add(time.Hour))
	x := accepted(true)
	if x.Verdict != "violation" || x.Accepted.Operator != "ann" || x.Accepted.Reason != "known" {
		t.Errorf("%s, %+v", x.Verdict, x.Accepted)
	}
	if open, known := gauge(t, registry, "dpwatch_open_violations"), gauge(t, registry, "dpwatch_accepted_violations"); open != 0 || known != 1 {
		t.Errorf("%g open and %g accepted violations, want 0 and 1", open, known)
	}
	stop()
	e.restart(t, nil)
	stop = e.begin(t)
	e.restored(t)
	accepted(true)
	e.alerts(t, 1)

	e.deploy(t, "CREATE OR REPLACE FUNCTION laplace(scale float8) RETURNS float8 LANGUAGE sql VOLATILE AS 'SELECT scale / 17 * ln((1 - random()) / (1 - random()))'")
	e.actions(t, found.Key, "end dpwatch the engine changed", "accept ann known")
	eventually.True(t, "the alerts of the end and of the new engine", func() bool { return e.kinds()[finding.Violation] >= 3 }, func() any { return e.kinds() })
	e.decidedOn(t, 1)
	accepted(false)

	eventually.True(t, "the new engine is in the ledger", func() bool { return e.Status().Ledger.Unsaved == 0 }, func() any { return e.Status() })
	e.accept(t, found.Key, now().Add(time.Hour))
	accepted(true)
	e.operator(t, func(ctx context.Context, store *ledger.Ledger) error {
		return store.Actions.Revoke(ctx, "engine", found.Key, "bob", "not known")
	})
	e.alerts(t, 4)
	e.accept(t, found.Key, now().Add(time.Hour))
	accepted(true)
	ahead.Store(int64(2 * time.Hour))
	e.alerts(t, 5)
	accepted(false)
	e.actions(t, found.Key, "end dpwatch its date has passed", "accept ann known", "revoke bob not known", "accept ann known", "end dpwatch the engine changed", "accept ann known")
	stop()
}

// TestAcceptAway: another engine ends the acceptance of a violation whose audit is not in memory, because it was
// evicted before a restart and has no place after it.
func TestAcceptAway(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	e := newEngineRig(t, func(o *audit.Options) { o.MaxAudits, o.Workers = 2, 1 })
	e.deploy(t, brokenNoise)
	stop := e.begin(t)
	e.Submit(query(engineQuery))
	first := e.decidedOn(t, 0)
	e.Submit(query("SELECT p_count(count(*)) FROM people WHERE true /*dp_epsilon='1'*/"))
	eventually.True(t, "a violation is evicted", func() bool { return len(e.Status().Records) == 1 }, func() any { return e.Status() })
	if got := e.Status().Records[0].ID; got != first.ID {
		t.Fatalf("%s was evicted, want %s", got, first.ID)
	}
	eventually.True(t, "the violations are in the ledger", func() bool { return e.Status().Ledger.Unsaved == 0 }, func() any { return e.Status() })
	e.accept(t, first.Key, time.Now().Add(time.Hour))
	eventually.True(t, "the acceptance", func() bool { return e.Status().Records[0].Accepted != nil }, func() any { return e.Status() })
	e.alerts(t, 2)

	e.deploy(t, "COMMENT ON FUNCTION laplace(float8) IS 'no other engine'")
	stop()
	e.restart(t, func(o *audit.Options) { o.MaxAudits = 1 })
	stop = e.begin(t)
	e.restored(t)
	if s := e.Status(); len(s.Audits) != 1 || len(s.Records) != 0 || s.Audits[0].Key == first.Key {
		t.Fatalf("%d audits, %d records", len(s.Audits), len(s.Records))
	}
	e.actions(t, first.Key, "accept ann known")
	e.deploy(t, "CREATE OR REPLACE FUNCTION laplace(scale float8) RETURNS float8 LANGUAGE sql VOLATILE AS 'SELECT scale / 17 * ln((1 - random()) / (1 - random()))'")
	e.actions(t, first.Key, "end dpwatch the engine changed", "accept ann known")
	stop()
}
