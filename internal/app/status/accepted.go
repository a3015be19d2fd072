package status

import (
	"fmt"
	"time"

	"github.com/dpwatch/dpwatch/internal/audit/view"
	"github.com/dpwatch/dpwatch/internal/read"
)

// violationsLine counts violations.
func violationsLine(found []read.Audit) string {
	accepted := 0
	for _, a := range found {
		if a.Accepted != nil {
			accepted++
		}
	}
	if accepted == 0 {
		return fmt.Sprint(len(found))
	}
	return fmt.Sprintf("%d, %d of them accepted", len(found), accepted)
}

// falseAlarmsLine describes the rate of false alarms on identical data.
func falseAlarmsLine(f *view.FalseAlarms) string {
	text := f.Text()
	if f.Running > 0 {
		text += fmt.Sprintf("; %d are not decided", f.Running)
	}
	if f.Off != "" {
		text += "; no control audits now: " + f.Off
	}
	return text
}

// alertsLine describes the alerts and the messages that have not arrived.
func alertsLine(a *view.AlertsState) string {
	text := fmt.Sprintf("%d firing", a.Firing)
	for _, u := range a.Undelivered {
		text += fmt.Sprintf("; to %s: %d messages wait", u.Receiver, u.Pending)
		if u.Pending > 0 {
			text += fmt.Sprintf(", the oldest for %s", u.Oldest.Round(time.Second))
		}
		if u.Failed > 0 {
			text += fmt.Sprintf(", %d failed (dpwatch alerts list)", u.Failed)
		}
	}
	if a.Trouble != "" {
		text += "; FAULT: " + a.Trouble
	}
	return text
}
