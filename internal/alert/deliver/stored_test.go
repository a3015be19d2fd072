package deliver_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/dpwatch/dpwatch/internal/alert"
	"github.com/dpwatch/dpwatch/internal/alert/deliver"
	"github.com/dpwatch/dpwatch/internal/eventually"
	"github.com/dpwatch/dpwatch/internal/finding"
	"github.com/dpwatch/dpwatch/internal/ledger"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
)

// escaped are findings whose messages, or whose subjects, need escapes in JSON, or are no UTF-8.
func escaped() []alert.Finding {
	quoted := violation()
	quoted.Summary = `SELECT broken(count(*), $1) AS "n" FROM "users" WHERE "a\b" = $2`
	return []alert.Finding{
		quoted,
		{Kind: finding.BudgetExceeded, Budget: alert.Budget{Name: "b", User: "an\xffn", Database: "app", Epsilon: 1, Spent: 2}},
		{Kind: finding.UnclaimedRead, Group: "g", Summary: `SELECT "x" FROM "users"`, User: "bob", Database: "app", Application: "ps\xe4l"},
	}
}

// withLedger returns options with a migrated ledger and a webhook, and the ledger.
func withLedger(t *testing.T, h *hook) (deliver.Options, ledger.Options, *ledger.Ledger) {
	t.Helper()
	lo := ledger.Options{DSN: pgtest.Database(t), Connections: 3}
	if _, _, err := ledger.Migrate(t.Context(), lo); err != nil {
		t.Fatal(err)
	}
	l, err := ledger.Open(t.Context(), lo)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return deliver.Options{
		Receivers: []deliver.Receiver{{Name: "hook", Type: "webhook", URL: h.URL, Secret: secret, SendResolved: true, Timeout: time.Hour}},
		Ledger:    func(ctx context.Context) (*ledger.Ledger, error) { return ledger.Open(ctx, lo) },
	}, lo, l
}

// delivered reports whether the ledger has a number of alerts, and all their messages have arrived.
func delivered(t *testing.T, l *ledger.Ledger, alerts int) bool {
	t.Helper()
	all, err := l.Alerts.Latest(t.Context(), 100)
	if err != nil {
		t.Fatal(err)
	}
	return len(all) == alerts && !slices.ContainsFunc(all, func(a ledger.Alert) bool { return a.Pending+a.Failed > 0 })
}

// TestEscapedMessages: alerts whose JSON has backslashes arrive once, their messages are what was found, and a restart
// repeats none of them.
func TestEscapedMessages(t *testing.T) {
	t.Parallel()
	h := newHook(t)
	o, _, l := withLedger(t, h)
	for range 2 {
		d, stop := start(t, o)
		for _, f := range escaped() {
			d.Notify(f)
		}
		eventually.True(t, "all fire and are delivered", func() bool {
			s := d.State()
			return s.Firing == len(escaped()) && len(s.Undelivered) == 0 && delivered(t, l, len(escaped()))
		})
		stop()
		if s := d.State(); s.Trouble != "" || s.Firing != len(escaped()) {
			t.Errorf("state %+v", s)
		}
	}
	events, seen := h.got()
	if len(seen) != len(escaped()) {
		t.Fatalf("%d requests: %q", len(seen), seen)
	}
	for _, e := range events {
		m := e.Data
		switch m.Kind {
		case finding.Violation:
			if m.Summary != escaped()[0].Summary || m.Link != "http://dpwatch:9188/queries/3f9c00000000" || !strings.Contains(m.Action, "dpwatch explain 3f9c00000000") {
				t.Errorf("message %+v", m)
			}
		case finding.BudgetExceeded:
			if m.Users[0] != "an\uFFFDn" || !strings.Contains(m.Subject, "budget\x1fb\x1f") || m.Link != "http://dpwatch:9188/budgets" {
				t.Errorf("message %+v", m)
			}
		default:
			if m.Applications[0] != "ps\uFFFDl" {
				t.Errorf("message %+v", m)
			}
		}
	}
}

// TestPendingAtRestart: messages that wait when a process ends are sent by the next one, and counted until then.
func TestPendingAtRestart(t *testing.T) {
	t.Parallel()
	h := newHook(t)
	o, _, l := withLedger(t, h)
	h.mu.Lock()
	h.fail = math.MaxInt
	h.mu.Unlock()
	registry := prometheus.NewRegistry()
	o.Metrics = registry
	d, stop := start(t, o)
	for _, f := range escaped() {
		d.Notify(f)
	}
	eventually.True(t, "pending messages are counted", func() bool {
		n, err := gauge(registry, "dpwatch_alert_undelivered_messages", "hook")
		age, _ := gauge(registry, "dpwatch_alert_oldest_pending_message_seconds", "hook")
		return err == nil && n == float64(len(escaped())) && age > 0
	})
	stop()
	if u := d.State().Undelivered; len(u) != 1 || u[0].Receiver != "hook" || u[0].Pending != len(escaped()) {
		t.Errorf("undelivered %+v", u)
	}
	h.mu.Lock()
	h.fail = 0
	h.mu.Unlock()
	o.Metrics = nil
	start(t, o)
	eventually.True(t, "they arrive", func() bool { return delivered(t, l, len(escaped())) })
	if events, _ := h.got(); len(events) != len(escaped()) {
		t.Errorf("%d messages arrived", len(events))
	}
}

// TestLedgerFailsAtStart: a process whose ledger cannot be opened, and then not listed, for a moment repeats no
// message, reports both faults, and afterwards has the alerts that fire and stores new ones.
func TestLedgerFailsAtStart(t *testing.T) {
	t.Parallel()
	h := newHook(t)
	o, lo, l := withLedger(t, h)
	d, stop := start(t, o)
	d.Notify(escaped()[0])
	eventually.True(t, "the violation is delivered", func() bool { return delivered(t, l, 1) })
	stop()

	pgtest.Exec(t, lo.DSN, "ALTER TABLE dpwatch_ledger.alerts RENAME TO elsewhere")
	var calls atomic.Int32
	registry := prometheus.NewRegistry()
	o.Metrics = registry
	o.Ledger = func(ctx context.Context) (*ledger.Ledger, error) {
		if calls.Add(1) < 3 {
			return nil, errors.New("the ledger is away")
		}
		return ledger.Open(ctx, lo)
	}
	d, _ = start(t, o)
	d.Notify(escaped()[0]) // fires already
	d.Notify(escaped()[1])
	faults := func(operation string) float64 {
		n, err := gauge(registry, "dpwatch_alert_ledger_faults_total", operation)
		if err != nil {
			t.Error(err)
		}
		return n
	}
	eventually.True(t, "both faults are reported", func() bool { return faults("open") >= 2 && faults("list") >= 2 && d.State().Trouble != "" })
	pgtest.Exec(t, lo.DSN, "ALTER TABLE dpwatch_ledger.elsewhere RENAME TO alerts")
	eventually.True(t, "the new alert is delivered", func() bool { return delivered(t, l, 2) })
	eventually.True(t, "no fault in the end", func() bool { return d.State().Trouble == "" })
	if s := d.State(); s.Firing != 2 {
		t.Errorf("%d alerts fire", s.Firing)
	}
	if _, seen := h.got(); len(seen) != 2 {
		t.Errorf("%d requests; want one for each alert", len(seen))
	}
}
