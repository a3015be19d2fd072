package config_test

import (
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/config"
)

func TestAlerts(t *testing.T) {
	t.Parallel()
	c, err := config.Parse("f.yaml", []byte(minimal+`
alerts:
  receivers:
    - {name: am, type: alertmanager, url: "http://127.0.0.1:9093", labels: [{name: team, value: privacy}]}
    - {name: hook, type: webhook, url: "https://example.org/x", secret: whsec_c2VjcmV0, send_resolved: false}
    - {name: run, type: exec, command: [/bin/cat]}
  routes:
    - {severity: error, kind: violation, receivers: [am, hook]}
    - {receivers: run}
  severity:
    - {excess: 0, severity: info}
`), env)
	if err != nil {
		t.Fatal(err)
	}
	a := c.Alerts
	if len(a.Receivers) != 3 || a.Receivers[0].SendResolved != nil || *a.Receivers[1].SendResolved || len(a.Routes) != 2 || len(a.Severity) != 1 {
		t.Errorf("alerts: %+v", a)
	}
	text, err := config.Print(c)
	if err != nil || strings.Contains(string(text), "example.org") || strings.Contains(string(text), "whsec") {
		t.Errorf("a printed configuration shows secrets: %s, %v", text, err)
	}
}

func TestAlertsErrors(t *testing.T) {
	t.Parallel()
	_, err := config.Parse("bad.yaml", []byte(`alerts:
  receivers:
    - {name: a b, type: mail}
    - {name: x, type: alertmanager}
    - {name: x, type: webhook, url: "ftp://secret.example.org"}
    - {name: s, type: slack, url: "http://s", secret: k}
    - {name: e, type: exec, command: notify}
    - {name: o, type: stdout, headers: [{name: A, value: b}], labels: [{name: a-b, value: c}]}
  routes:
    - {kind: violations, severity: high, receivers: [x, y]}
  severity:
    - {excess: 1, severity: info}
    - {excess: 1, severity: error}
  coverage: {share: 2}
`), env)
	if err == nil || strings.Contains(err.Error(), "secret.example.org") {
		t.Fatalf("got %v", err)
	}
	for _, want := range []string{
		`bad.yaml:3: alerts.receivers[0].name: "a b": must be`,
		`bad.yaml:3: alerts.receivers[0].type: "mail": must be`,
		`bad.yaml:4: alerts.receivers[1].url: missing`,
		`bad.yaml:5: alerts.receivers[2].name: "x" is the name of another receiver`,
		`bad.yaml:5: alerts.receivers[2].url: is not a URL`,
		`bad.yaml:5: alerts.receivers[2].secret: missing`,
		`bad.yaml:6: alerts.receivers[3].secret: does not apply to slack`,
		`bad.yaml:7: alerts.receivers[4].command: must be a program`,
		`bad.yaml:7: alerts.receivers[4].name: no route leads to "e"`,
		`bad.yaml:8: alerts.receivers[5].headers[0].name`,
		`bad.yaml:8: alerts.receivers[5].labels[0].name`,
		`bad.yaml:10: alerts.routes[0].kind`,
		`bad.yaml:10: alerts.routes[0].severity`,
		`bad.yaml:10: alerts.routes[0].receivers[1]: "y" is not the name`,
		`bad.yaml:13: alerts.severity[1].excess`,
		`bad.yaml:14: alerts.coverage.share`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no error %q in\n%v", want, err)
		}
	}
}
