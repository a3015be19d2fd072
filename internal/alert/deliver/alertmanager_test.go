package deliver_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/dpwatch/dpwatch/internal/alert"
	"github.com/dpwatch/dpwatch/internal/alert/alerttest"
	"github.com/dpwatch/dpwatch/internal/alert/deliver"
	"github.com/dpwatch/dpwatch/internal/eventually"
	"github.com/dpwatch/dpwatch/internal/finding"
)

// TestAlertmanager: a violation fires in Alertmanager, is repeated so that it stays, and is resolved there.
func TestAlertmanager(t *testing.T) {
	t.Parallel()
	address := alerttest.Alertmanager(t)
	d, _ := start(t, deliver.Options{
		Receivers: []deliver.Receiver{{Name: "am", Type: "alertmanager", URL: address + "/", SendResolved: true, Timeout: time.Hour, Labels: []alert.Label{{Name: "team", Value: "privacy"}}}},
		Resend:    time.Minute,
	})
	firing := func() []alerttest.Alert { return alerttest.Alerts(t, address, `kind="violation"`) }
	d.Notify(violation())
	var all []alerttest.Alert
	eventually.True(t, "the alert fires in Alertmanager", func() bool { all = firing(); return len(all) == 1 })
	l := all[0].Labels
	if got := fmt.Sprint(l["alertname"], l["severity"], l["query_id"], l["database"], l["engine"], l["team"]); got != "DPWatchViolationwarning3f9c00000000appshopprivacy" {
		t.Errorf("labels %v", l)
	}
	if all[0].Annotations["users"] != "ann" || all[0].GeneratorURL == "" {
		t.Errorf("alert %+v", all[0])
	}
	over := violation()
	over.Status = finding.Resolved
	d.Notify(over)
	eventually.True(t, "the alert is resolved in Alertmanager", func() bool { return len(firing()) == 0 })
}

// TestRepetitionBeforeTheEnd: the end of an alert is sent after a repetition of it that is under way, which would make
// it fire again.
func TestRepetitionBeforeTheEnd(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var titles []string // of the messages, in the order in which they were answered
	arrived := 0
	waits, release := make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var alerts []struct{ Annotations map[string]string }
		if err := json.NewDecoder(r.Body).Decode(&alerts); err != nil || len(alerts) != 1 {
			t.Errorf("%d alerts, %v", len(alerts), err)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if arrived++; arrived == 2 { // the first repetition, or the first message after it
			mu.Unlock()
			close(waits)
			<-release
			mu.Lock()
		}
		titles = append(titles, alerts[0].Annotations["summary"])
	}))
	defer server.Close()
	registry := prometheus.NewRegistry()
	d, stop := start(t, deliver.Options{
		Receivers: []deliver.Receiver{{Name: "am", Type: "alertmanager", URL: server.URL, SendResolved: true, Timeout: time.Hour}},
		Metrics:   registry, Resend: 50 * time.Millisecond,
	})
	d.Notify(violation())
	<-waits
	over := violation()
	over.Status = finding.Resolved
	d.Notify(over)
	eventually.True(t, "the alert fires no more", func() bool {
		n, err := gauge(registry, "dpwatch_alerts_firing", "violation")
		return err == nil && n == 0
	})
	time.Sleep(20 * time.Millisecond) // so that a fault is seen; without one nothing depends on it
	close(release)
	eventually.True(t, "the end has arrived", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return slices.ContainsFunc(titles, func(s string) bool { return s != titles[0] })
	})
	stop()
	if last := len(titles) - 1; titles[last] == titles[0] || slices.ContainsFunc(titles[:last], func(s string) bool { return s != titles[0] }) {
		t.Errorf("messages: %q; want the end last, once", titles)
	}
}
