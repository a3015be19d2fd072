package read

import (
	"fmt"

	"github.com/dpwatch/dpwatch/internal/app/show"
)

// AcceptedText describes an acceptance.
func AcceptedText(c *Accepted) string {
	return fmt.Sprintf("until %s, or until the engine changes; by %s on %s: %s", show.Moment(c.Until), c.Operator, show.Moment(c.At), c.Reason)
}

// AcceptedUntil returns until when a violation is accepted; "-" if it is not.
func (a *Audit) AcceptedUntil() string {
	if a.Accepted == nil {
		return "-"
	}
	return show.Moment(a.Accepted.Until)
}

// ActionRows describes what operators did, as rows of a section.
func ActionRows(actions []Action) [][2]string {
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
