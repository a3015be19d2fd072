package main

import (
	"net/http"
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/internal/alert/alerttest"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
)

// TestAlerts: a violation that clients cause fires in Alertmanager; when the engine is repaired, it is resolved there. The ledger shows the alert and its
// messages, also those that failed.
func TestAlerts(t *testing.T) {
	t.Parallel()
	address := alerttest.Alertmanager(t)
	s := startSidecar(t, "LEDGER ADMIN TOKEN\nalerts:\n  receivers:\n    - {name: am, type: alertmanager, url: "+address+"}\n    - {name: bad, type: webhook, url: "+address+"/none, secret: key}\n")
	const noisy = "CREATE OR REPLACE FUNCTION noisy(value float8, scale float8) RETURNS float8 LANGUAGE sql VOLATILE AS "
	pgtest.Exec(t, s.direct, noisy+"'SELECT value'")
	exec0(t, s.connect(t), "/*dp_epsilon='0.5'*/ SELECT noisy(count(*), 4) FROM people")
	firing := func() []alerttest.Alert { return alerttest.Alerts(t, address, `kind="deterministic"`) }
	s.until(t, "the violation fires in Alertmanager", func() bool { return len(firing()) == 1 })
	if a := firing()[0]; a.Labels["alertname"] != "DPWatchDeterministic" || a.Labels["severity"] != "critical" || a.Labels["query_id"] == "" || strings.Contains(a.Annotations["query_summary"], "4") {
		t.Errorf("alert %+v", a)
	}
	run := func(args ...string) result { return call(t, "", append(args, "--config", s.config)...) }
	id := ""
	s.until(t, "the ledger shows that a message failed", func() bool {
		r := run("alerts", "list")
		r.want(t, exitDone, "ID", "TITLE")
		for line := range strings.Lines(r.stdout) {
			if f := strings.Fields(line); strings.Contains(line, "deterministic") {
				id = f[0]
			}
		}
		return id != "" && strings.Contains(run("alerts", "show", id).stdout, "failed")
	})
	run("alerts", "show", id).want(t, exitDone, "firing since", "the receiver answered 404 Not Found", "delivered")
	run("alerts", "retry", id).want(t, exitDone, "1 failed messages are sent again")
	run("alerts", "show", "none").want(t, exitFailure, "dpwatch alerts list lists the alerts")
	run("alert", "test", "am").want(t, exitDone, "receiver am (alertmanager) accepted the test alert and its end")
	run("alert", "test", "bad").want(t, exitFailure, "404")
	run("alert", "test", "none").want(t, exitFailure, "it has am, bad")

	pgtest.Exec(t, s.direct, noisy+"'SELECT round((value + scale * ln((1 - random()) / (1 - random()))) * 1024) / 1024'")
	if code, body := s.ask(t, http.MethodPost, "/api/engine?label=repaired"); code != http.StatusNoContent {
		t.Fatalf("%d %s", code, body)
	}
	s.until(t, "the violation is resolved in Alertmanager", func() bool { return len(firing()) == 0 })
	s.until(t, "and in the ledger", func() bool { return strings.Contains(run("alerts", "show", id).stdout, "resolved since") })
}
