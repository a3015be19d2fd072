package pages

import (
	"errors"
	"testing"

	"github.com/dpwatch/dpwatch/internal/app/status"
	"github.com/dpwatch/dpwatch/internal/audit/view"
	"github.com/dpwatch/dpwatch/internal/ledger"
	"github.com/dpwatch/dpwatch/internal/read"
)

// TestAlertsTitle: the page of alerts does not say that nothing is wrong while violations are open, alerts cannot be
// read, or messages do not arrive.
func TestAlertsTitle(t *testing.T) {
	t.Parallel()
	late := []ledger.Undelivered{{Receiver: "r", Pending: 1, Oldest: 2 * view.LateAfter}}
	for _, tc := range []struct {
		name      string
		found     []read.Audit
		alerts    *view.AlertsState
		receivers bool
		err       error
		want      string
	}{
		{"nothing", nil, &view.AlertsState{}, true, nil, "0 alerts are firing."},
		{"a violation without an alert", make([]read.Audit, 1), &view.AlertsState{}, true, nil, "0 alerts are firing; 1 violation is open."},
		{"an accepted violation", []read.Audit{{Accepted: &read.Accepted{}}}, &view.AlertsState{}, true, nil, "0 alerts are firing."},
		{"the ledger cannot be read", make([]read.Audit, 2), &view.AlertsState{Firing: 2}, true, errors.New("away"), "2 alerts are firing; the ledger's list of alerts cannot be read."},
		{"nothing can be read", nil, nil, true, errors.New("away"), "The alerts cannot be read."},
		{"no status", nil, nil, true, nil, "3 alerts are firing."},
		{"pending", nil, &view.AlertsState{Firing: 1, Undelivered: late}, true, nil, "1 alert is firing; messages do not arrive."},
		{"no receivers", make([]read.Audit, 1), &view.AlertsState{Firing: 1}, false, nil, "No alert is sent: no receiver is configured; 1 violation is open."},
	} {
		if got := alertsTitle([]status.Overview{{Found: tc.found, Alerts: tc.alerts}}, 3, tc.receivers, tc.err); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
}
