package status

import (
	"fmt"
	"time"

	"github.com/dpwatch/dpwatch/internal/app/show"
	"github.com/dpwatch/dpwatch/internal/audit/view"
	"github.com/dpwatch/dpwatch/internal/ledger"
)

// AcceptedText describes an acceptance.
func AcceptedText(c *view.Accepted) string {
	return fmt.Sprintf("until %s, or until the engine changes; by %s on %s: %s", show.Moment(c.Until), c.Operator, show.Moment(c.At), c.Reason)
}

// acceptedUntil returns until when a violation is accepted; "-" if it is not.
func (a *AuditRow) acceptedUntil() string {
	if a.Accepted == nil {
		return "-"
	}
	return show.Moment(a.Accepted.Until)
}

// violationsLine counts violations.
func violationsLine(found []AuditRow) string {
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

// ActionRows describes what operators did, as rows of a section.
func ActionRows(actions []ledger.Action) [][2]string {
	var rows [][2]string
	for _, a := range actions {
		text := a.Action
		if a.Until != nil {
			text += " until " + show.Moment(*a.Until)
		}
		rows = append(rows, [2]string{show.Moment(a.At), fmt.Sprintf("%s, by %s (database role %s): %s", text, a.Operator, a.Role, a.Reason)})
	}
	return rows
}
