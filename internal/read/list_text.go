package read

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/dpwatch/dpwatch/internal/app/show"
)

// MarshalJSON writes audits and records as in the status, and how many are left out.
func (p Page) MarshalJSON() ([]byte, error) {
	out := struct {
		Audits  []any  `json:"audits"`
		Records []any  `json:"records,omitempty"`
		LeftOut int    `json:"left_out"`
		Next    string `json:"next_cursor,omitempty"`
	}{Audits: []any{}, LeftOut: p.Left, Next: p.Next}
	for i := range p.Audits {
		a := &p.Audits[i]
		if a.State == Evicted {
			out.Records = append(out.Records, a.asInStatus())
		} else {
			out.Audits = append(out.Audits, a.asInStatus())
		}
	}
	return json.Marshal(out)
}

// asInStatus returns the audit as its status has it, with the fields that another version of dpwatch knows.
func (a *Audit) asInStatus() any {
	if a.Raw != nil {
		return a.Raw
	}
	return a
}

// Write writes a table.
func (p Page) Write(w io.Writer) error {
	var b strings.Builder
	table := show.NewTable(&b)
	table.Row("ID", "VERDICT OR STATE", "CLAIM", "LOWER BOUND", "ESTIMATE", "TRIALS", "SEEN", "LAST SEEN", "USER", "SUMMARY")
	for i := range p.Audits {
		a := &p.Audits[i]
		state := a.Verdict
		switch {
		case a.State == Evicted:
			state += " (evicted)"
		case a.Accepted != nil:
			state += " (accepted)"
		case a.former():
			state += " (" + string(a.State) + ")"
		}
		table.Row(a.ID, state, a.ClaimText(), a.BoundText(), show.Estimate(a.Result()), fmt.Sprint(a.Trials()),
			fmt.Sprint(a.Seen), show.Moment(a.LastSeen), a.User, show.Shortened(a.Summary))
	}
	table.Flush()
	if len(p.Audits) == 0 {
		b.Reset()
		b.WriteString("no audits\n")
	}
	if p.Left > 0 {
		fmt.Fprintf(&b, "left out: %d; --cursor %s lists the next ones, --limit 0 all\n", p.Left, p.Next)
	}
	_, err := io.WriteString(w, show.Printable(b.String()))
	return err
}
