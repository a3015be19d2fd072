package deliver_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/dpwatch/dpwatch/internal/alert"
	"github.com/dpwatch/dpwatch/internal/alert/alerttest"
	"github.com/dpwatch/dpwatch/internal/alert/deliver"
	"github.com/dpwatch/dpwatch/internal/eventually"
	"github.com/dpwatch/dpwatch/internal/finding"
	"github.com/dpwatch/dpwatch/internal/ledger"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
)

// secret is the key of the signatures, which is base64 of "a secret of the tests".
const secret = "whsec_YSBzZWNyZXQgb2YgdGhlIHRlc3Rz"

// event is what a hook received.
type event struct {
	ID   string        `json:"id"`
	Type string        `json:"type"`
	Data alert.Message `json:"data"`
}

// hook is a receiver of webhooks that verifies signatures by the rules of Standard Webhooks.
type hook struct {
	*httptest.Server
	mu     sync.Mutex
	fail   int // requests that it refuses to process
	seen   []string
	events []event
}

func newHook(t *testing.T) *hook {
	t.Helper()
	h := &hook{}
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		id, at := r.Header.Get("webhook-id"), r.Header.Get("webhook-timestamp")
		mac := hmac.New(sha256.New, []byte("a secret of the tests"))
		mac.Write([]byte(id + "." + at + "." + string(body)))
		if want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)); r.Header.Get("webhook-signature") != want {
			t.Errorf("signature %q, want %q", r.Header.Get("webhook-signature"), want)
		}
		if seconds, err := strconv.ParseInt(at, 10, 64); err != nil || time.Since(time.Unix(seconds, 0)) > time.Hour {
			t.Errorf("webhook-timestamp %q", at)
		}
		var e event
		if err := json.Unmarshal(body, &e); err != nil || e.ID != id || !strings.HasPrefix(r.Header.Get("Content-Type"), "application/cloudevents+json") {
			t.Errorf("not a CloudEvent with the id of the request: %v: %s", err, body)
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		h.seen = append(h.seen, id)
		if h.fail > 0 {
			h.fail--
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		h.events = append(h.events, e)
	}))
	t.Cleanup(h.Close)
	return h
}

func (h *hook) got() ([]event, []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]event(nil), h.events...), append([]string(nil), h.seen...)
}

// TestWebhook: with a ledger, a message that failed is sent again with the same id; one alert is sent for several
// neighbours and users; another process ends the alert with the same id.
func TestWebhook(t *testing.T) {
	t.Parallel()
	lo := ledger.Options{DSN: pgtest.Database(t), Connections: 3}
	if _, _, err := ledger.Migrate(t.Context(), lo); err != nil {
		t.Fatal(err)
	}
	h := newHook(t)
	h.fail = 1
	o := deliver.Options{
		Receivers: []deliver.Receiver{{Name: "hook", Type: "webhook", URL: h.URL, Secret: secret, SendResolved: true, Timeout: time.Hour}},
		Ledger:    func(ctx context.Context) (*ledger.Ledger, error) { return ledger.Open(ctx, lo) },
	}
	d, stop := start(t, o)
	d.Notify(violation())
	second := violation()
	second.Neighbour, second.User = "d2", "bob"
	d.Notify(second)
	l, err := ledger.Open(t.Context(), lo)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	// stored reports whether the ledger has the alert with both users, and a number of messages that were all
	// delivered.
	stored := func(messages int) bool {
		all, err := l.Alerts.Latest(t.Context(), 2)
		if err != nil {
			t.Fatal(err)
		}
		if len(all) != 1 || !strings.Contains(string(all[0].Body), "bob") {
			return false
		}
		_, deliveries, err := l.Alerts.Find(t.Context(), all[0].ID)
		if err != nil {
			t.Fatal(err)
		}
		return len(deliveries) == messages && !slices.ContainsFunc(deliveries, func(d ledger.Delivery) bool { return d.State != ledger.DeliveryDelivered })
	}
	eventually.True(t, "the violation is delivered", func() bool { return stored(1) })
	stop()

	d, stop = start(t, o)
	d.Notify(violation()) // fires already
	over := violation()
	over.Status, over.Reason = finding.Resolved, "a later engine"
	d.Notify(over)
	eventually.True(t, "the end is delivered", func() bool { return stored(2) })
	stop()

	events, seen := h.got()
	if len(seen) != 3 || seen[0] != seen[1] || seen[1] == seen[2] {
		t.Errorf("ids of the requests: %q", seen)
	}
	first, last := events[0], events[1]
	if first.Type != "io.dpwatch.alert.firing" || last.Type != "io.dpwatch.alert.resolved" || first.Data.ID != last.Data.ID || first.Data.ID == "" {
		t.Errorf("events: %+v, %+v", first, last)
	}
	if got := strings.Join(last.Data.Users, " ") + ", " + strings.Join(last.Data.Neighbours, " "); got != "ann bob, d1 d2" {
		t.Errorf("users and neighbours of the alert: %s", got)
	}
	a, deliveries, err := l.Alerts.Find(t.Context(), first.Data.ID)
	if err != nil || a.Status != "resolved" || a.EndsAt == nil || len(deliveries) != 2 || deliveries[0].Attempts != 2 || deliveries[0].State != ledger.DeliveryDelivered {
		t.Errorf("in the ledger: %+v, %+v, %v", a, deliveries, err)
	}
}

// TestNoLedger: without a ledger messages are sent directly; while it is away, after some time. Errors have no part of
// the URL.
func TestNoLedger(t *testing.T) {
	t.Parallel()
	h := newHook(t)
	d, _ := start(t, deliver.Options{
		Receivers: []deliver.Receiver{{Name: "hook", Type: "webhook", URL: h.URL, Secret: secret, Timeout: time.Hour}},
		Ledger:    func(context.Context) (*ledger.Ledger, error) { return nil, ledger.ErrNotMigrated },
		Patience:  time.Millisecond,
	})
	d.Notify(violation())
	eventually.True(t, "the violation arrives", func() bool { events, _ := h.got(); return len(events) == 1 })
	h.Close()
	r := deliver.Receiver{Name: "gone", Type: "slack", URL: h.URL + "/very-secret"}
	if err := deliver.Test(t.Context(), r, style, io.Discard, time.Now()); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("a receiver that is away: %v", err)
	}
}

// TestTwoProcesses: a process that does not report an alert takes it over from the ledger, and does not repeat one that
// another process has ended.
func TestTwoProcesses(t *testing.T) {
	t.Parallel()
	address := alerttest.Alertmanager(t)
	lo := ledger.Options{DSN: pgtest.Database(t), Connections: 3}
	if _, _, err := ledger.Migrate(t.Context(), lo); err != nil {
		t.Fatal(err)
	}
	o := deliver.Options{
		Receivers: []deliver.Receiver{{Name: "am", Type: "alertmanager", URL: address, SendResolved: true, Timeout: time.Hour}},
		Ledger:    func(ctx context.Context) (*ledger.Ledger, error) { return ledger.Open(ctx, lo) },
		Resend:    30 * time.Second,
	}
	one, stop := start(t, o)
	one.Notify(violation())
	firing := func() int { return len(alerttest.Alerts(t, address, `kind="violation"`)) }
	eventually.True(t, "it fires", func() bool { return firing() == 1 })
	o.Resend = 50 * time.Millisecond
	registry := prometheus.NewRegistry()
	o.Metrics = registry
	start(t, o) // it has the alert of the ledger
	has := func() float64 {
		n, err := gauge(registry, "dpwatch_alerts_firing", "violation")
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	eventually.True(t, "the other process has the alert", func() bool { return has() == 1 })
	over := violation()
	over.Status = finding.Resolved
	one.Notify(over)
	stop()
	eventually.True(t, "the other process has it no more", func() bool { return has() == 0 })
	eventually.True(t, "it is resolved", func() bool { return firing() == 0 })
}

// gauge returns the sum of a metric over the series whose first label has a value.
func gauge(registry *prometheus.Registry, name, label string) (sum float64, err error) {
	all, err := registry.Gather()
	for _, family := range all {
		for _, m := range family.GetMetric() {
			if family.GetName() == name && m.GetLabel()[0].GetValue() == label {
				sum += m.GetGauge().GetValue() + m.GetCounter().GetValue()
			}
		}
	}
	return sum, err
}
