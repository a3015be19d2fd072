package deliver_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/dpwatch/dpwatch/internal/alert"
	"github.com/dpwatch/dpwatch/internal/alert/alerttest"
	"github.com/dpwatch/dpwatch/internal/alert/deliver"
	"github.com/dpwatch/dpwatch/internal/eventually"
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
	over.Kind = alert.Resolved
	d.Notify(over)
	eventually.True(t, "the alert is resolved in Alertmanager", func() bool { return len(firing()) == 0 })
}
