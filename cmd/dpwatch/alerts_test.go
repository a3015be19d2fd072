package main

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/internal/alert/alerttest"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
)

// TestAlerts: a violation that clients cause fires in Alertmanager, unless it is accepted; when the engine is repaired,
// it is resolved there. The rules for Prometheus fire meanwhile. The ledger shows the alert and its messages, also
// those that failed.
func TestAlerts(t *testing.T) {
	t.Parallel()
	address := alerttest.Alertmanager(t)
	s := startSidecar(t, "LEDGER ADMIN TOKEN\nalerts:\n  receivers:\n    - {name: am, type: alertmanager, url: "+address+"}\n    - {name: bad, type: webhook, url: "+address+"/none, secret: key}\n")
	text, err := os.ReadFile("../../deploy/prometheus/rules.yml")
	if err != nil {
		t.Fatal(err)
	}
	rules := file(t, "rules.yml", strings.ReplaceAll(string(text), "keep_firing_for: 10m", "keep_firing_for: 2s"))
	prometheus := alerttest.Prometheus(t, fmt.Sprintf(`
global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [%q]
scrape_configs:
  - {job_name: dpwatch, authorization: {credentials: %q}, static_configs: [{targets: [%q]}]}
`, rules, s.token, s.admin))
	fires := func(rule string) func() bool {
		return func() bool {
			return slices.ContainsFunc(alerttest.RuleAlerts(t, prometheus), func(a alerttest.Alert) bool { return a.Labels["alertname"] == rule && a.State == "firing" })
		}
	}
	const noisy = "CREATE OR REPLACE FUNCTION noisy(value float8, scale float8) RETURNS float8 LANGUAGE sql VOLATILE AS "
	pgtest.Exec(t, s.direct, noisy+"'SELECT value'")
	exec0(t, s.connect(t), "/*dp_epsilon='0.5'*/ SELECT noisy(count(*), 4) FROM people")
	firing := func() []alerttest.Alert { return alerttest.Alerts(t, address, `kind="deterministic"`) }
	var seen []alerttest.Alert
	s.until(t, "the violation fires in Alertmanager", func() bool { seen = firing(); return len(seen) == 1 })
	if a := seen[0]; a.Labels["alertname"] != "DPWatchDeterministic" || a.Labels["severity"] != "critical" || a.Labels["query_id"] == "" || strings.Contains(a.Annotations["query_summary"], "4") {
		t.Errorf("alert %+v", a)
	}
	s.until(t, "the rule fires in Prometheus", fires("DPWatchDeterministic"))
	if !slices.ContainsFunc(alerttest.RuleAlerts(t, prometheus), func(a alerttest.Alert) bool {
		return a.Labels["alertname"] == "DPWatchDeterministic" && a.Labels["severity"] == seen[0].Labels["severity"]
	}) {
		t.Errorf("the rule has another severity than Alertmanager's alert: %+v", alerttest.RuleAlerts(t, prometheus))
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
		return id != "" && strings.Contains(run("alerts", "list", id).stdout, "failed")
	})
	run("alerts", "list", id).want(t, exitDone, "firing since", "the receiver answered 404 Not Found", "delivered")
	if status, body := s.get(t, "/alerts"); status != http.StatusOK || !strings.Contains(body, "the receiver answered 404 Not Found") {
		t.Errorf("the page of alerts: %d\n%s", status, body)
	}
	run("alerts", "retry", id).want(t, exitDone, "1 failed messages are sent again")
	run("alerts", "list", "none").want(t, exitFailure, "dpwatch alerts list lists the alerts")
	run("alerts", "test", "am").want(t, exitDone, "receiver am (alertmanager) accepted the test alert and its end")
	run("alerts", "test", "bad").want(t, exitFailure, "404")
	run("alerts", "test", "none").want(t, exitFailure, "it has am, bad")

	query := seen[0].Labels["query_id"]
	run("audits", "accept", query, "--until", "2999-01-01", "--reason", "known").want(t, exitDone)
	s.until(t, "the accepted violation ends in Alertmanager", func() bool { return len(firing()) == 0 })
	run("audits", "accept", query, "--revoke", "--reason", "not known").want(t, exitDone)
	s.until(t, "it fires again", func() bool { return len(firing()) == 1 })

	pgtest.Exec(t, s.direct, noisy+"'SELECT round((value + scale * ln((1 - random()) / (1 - random()))) * 1024) / 1024'")
	if code, body := s.ask(t, http.MethodPost, "/api/engine?label=repaired"); code != http.StatusNoContent {
		t.Fatalf("%d %s", code, body)
	}
	s.until(t, "the violation is resolved in Alertmanager", func() bool { return len(firing()) == 0 })
	s.until(t, "and in the ledger", func() bool { return strings.Contains(run("alerts", "list", id).stdout, "resolved since") })
	s.until(t, "the rule fires no more", func() bool { return !fires("DPWatchDeterministic")() })
}

// TestFloatingPointAlert: a violation that only the lowest bits of numbers show fires as a warning of its own kind. When
// the engine then adds no noise at all, the same alert fires with the kind and the severity of that.
func TestFloatingPointAlert(t *testing.T) {
	t.Parallel()
	address := alerttest.Alertmanager(t)
	s := startSidecar(t, "LEDGER ADMIN TOKEN\nalerts:\n  receivers:\n    - {name: am, type: alertmanager, url: "+address+"}\n")
	const noisy = "CREATE OR REPLACE FUNCTION noisy(value float8, scale float8) RETURNS float8 LANGUAGE sql VOLATILE AS "
	pgtest.Exec(t, s.direct, noisy+"'SELECT value + scale * ln((1 - random()) / (1 - random()))'")
	exec0(t, s.connect(t), "/*dp_epsilon='0.5'*/ SELECT noisy(count(*), 2) FROM people WHERE id >= 50")
	fires := func(kind, severity string) (a alerttest.Alert) {
		s.until(t, kind+" fires in Alertmanager", func() bool {
			all := alerttest.Alerts(t, address, fmt.Sprintf("kind=%q", kind))
			if len(all) == 1 {
				a = all[0]
			}
			return len(all) == 1
		})
		if a.Labels["severity"] != severity {
			t.Errorf("alert %+v", a)
		}
		return a
	}
	first := fires("floating_point", "warning")
	if first.Labels["alertname"] != "DPWatchFloatingPoint" || !strings.Contains(first.Annotations["summary"], "only the lowest bits") {
		t.Errorf("alert %+v", first)
	}
	pgtest.Exec(t, s.direct, noisy+"'SELECT value'")
	if code, body := s.ask(t, http.MethodPost, "/api/engine?label=broken"); code != http.StatusNoContent {
		t.Fatalf("%d %s", code, body)
	}
	if then := fires("deterministic", "critical"); then.Labels["dpwatch_alert"] != first.Labels["dpwatch_alert"] {
		t.Errorf("another alert %+v, not %+v", then, first)
	}
}
