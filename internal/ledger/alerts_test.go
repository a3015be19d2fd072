package ledger_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/internal/eventually"
	"github.com/dpwatch/dpwatch/internal/ledger"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
)

// TestDeliver: every message is sent until it succeeds or fails for good; one that failed can be retried, and a later
// state of an alert is not replaced by an earlier one.
func TestDeliver(t *testing.T) {
	t.Parallel()
	o := ledger.Options{DSN: pgtest.Database(t), Connections: 4}
	if _, _, err := ledger.Migrate(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	l, err := ledger.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	now := time.Now().UTC().Truncate(time.Microsecond)
	a := ledger.Alert{ID: "a1", Engine: "e", Subject: "s", Kind: "violation", Severity: "error", Status: "firing", Title: "t", StartsAt: now, Updated: now, Body: []byte(`{"x": 1}`)}
	if err := l.Alerts.Save(t.Context(), a, []string{"flaky", "refuses", "busy"}); err != nil {
		t.Fatal(err)
	}
	older := a
	older.Updated, older.Status = now.Add(-time.Hour), "resolved"
	if err := l.Alerts.Save(t.Context(), older, []string{"flaky"}); err != nil {
		t.Fatal(err)
	}
	other := a
	other.ID, other.Engine = "b1", "other"
	if err := l.Alerts.Save(t.Context(), other, []string{"flaky"}); err != nil {
		t.Fatal(err)
	}
	var flaky, refuses, busy atomic.Int32
	var accept atomic.Bool
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- l.Alerts.Deliver(ctx, ledger.DeliverOptions{Engine: "e", Slots: 2, Every: 20 * time.Millisecond, Logger: zap.NewNop(), Send: func(_ context.Context, d ledger.Delivery) error {
			switch {
			case string(d.Body) != `{"x": 1}` || d.Alert != "a1":
				t.Errorf("delivery %+v", d)
			case d.Receiver == "flaky" && flaky.Add(1) == 1:
				return errors.New("try again")
			case d.Receiver == "refuses" && refuses.Add(1) > 0 && !accept.Load():
				return &ledger.PermanentError{Err: errors.New("404")}
			case d.Receiver == "busy" && busy.Add(1) == 1:
				return &ledger.LaterError{After: time.Millisecond}
			}
			return nil
		}})
	}()
	states := func() map[string]string {
		_, all, err := l.Alerts.Find(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		out := map[string]string{}
		for _, d := range all {
			out[d.Receiver] = d.State
		}
		return out
	}
	eventually.True(t, "two delivered, one failed", func() bool {
		s := states()
		return len(s) == 3 && s["flaky"] == "delivered" && s["busy"] == "delivered" && s["refuses"] == "failed"
	})
	if flaky.Load() != 2 || busy.Load() != 2 || refuses.Load() != 1 {
		t.Errorf("attempts: flaky %d, busy %d, refuses %d", flaky.Load(), busy.Load(), refuses.Load())
	}
	firing, err := l.Alerts.Firing(t.Context(), "e")
	if err != nil || len(firing) != 1 || firing[0].Failed != 1 || firing[0].Pending != 0 {
		t.Errorf("firing: %+v, %v", firing, err)
	}
	accept.Store(true)
	if n, err := l.Alerts.Retry(t.Context(), a); err != nil || n != 1 {
		t.Errorf("retry: %d, %v", n, err)
	}
	eventually.True(t, "the retry delivered", func() bool { return states()["refuses"] == "delivered" })
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if _, _, err := l.Alerts.Find(t.Context(), ""); !errors.Is(err, ledger.ErrNoAlert) {
		t.Errorf("an empty ID: %v", err)
	}
	a.Status, a.Updated = "resolved", now.Add(time.Second)
	if err := l.Alerts.Save(t.Context(), a, nil); err != nil {
		t.Fatal(err)
	}
	if err := l.Alerts.Prune(t.Context(), "e", now.Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if all, err := l.Alerts.Latest(t.Context(), 10); err != nil || len(all) != 1 || all[0].ID != "b1" {
		t.Errorf("after pruning: %+v, %v", all, err)
	}
}
