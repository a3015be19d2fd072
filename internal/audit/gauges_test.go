package audit_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/dpwatch/dpwatch/internal/audit"
	"github.com/dpwatch/dpwatch/internal/eventually"
	"github.com/dpwatch/dpwatch/internal/ledger"
)

// TestGaugesBeforeRestore: what is known only with the audits of earlier processes is absent until they are restored,
// and never 0.
func TestGaugesBeforeRestore(t *testing.T) {
	t.Parallel()
	unknown := []string{
		"dpwatch_audits", "dpwatch_open_violations", "dpwatch_accepted_violations", "dpwatch_watched_audits", "dpwatch_dp_queries",
		"dpwatch_dp_queries_audited_ratio", "dpwatch_oldest_waiting_audit_age_seconds", "dpwatch_oldest_untried_audit_age_seconds",
	}
	var present atomic.Bool
	var registry *prometheus.Registry
	gathered := func() (names []string) {
		families, err := registry.Gather()
		if err != nil {
			t.Error(err)
		}
		for _, f := range families {
			names = append(names, f.GetName())
		}
		return names
	}
	l := newLedgerRig(t, nil)
	stop := l.begin(t)
	l.Submit(query(leakyQuery))
	l.decided(t)
	stop()
	again := func(o *audit.Options) {
		registry = prometheus.NewRegistry()
		o.Metrics = registry
		open := o.Ledger
		o.Ledger = func(ctx context.Context) (*ledger.Engine, error) {
			if !present.Load() {
				return nil, ledger.ErrInUse // as while another process ends
			}
			return open(ctx)
		}
	}
	l.restart(t, again)
	defer l.begin(t)()
	eventually.True(t, "the ledger has a fault", func() bool { return l.Status().Ledger.Trouble != "" })
	names := gathered()
	for _, name := range unknown {
		if slices.Contains(names, name) {
			t.Errorf("%s is there before the audits are restored", name)
		}
	}
	if !slices.Contains(names, "dpwatch_ledger_up") {
		t.Error("dpwatch_ledger_up is absent")
	}
	present.Store(true)
	l.restored(t)
	names = gathered()
	for _, name := range unknown {
		if !slices.Contains(names, name) {
			t.Errorf("%s is absent after the audits are restored", name)
		}
	}
}
