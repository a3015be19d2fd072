package read

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/app/show"
)

// FilterStates returns the states that Filter accepts.
func FilterStates() []string {
	var out []string
	for _, s := range append(States(), Evicted) {
		out = append(out, string(s))
	}
	return out
}

// Verdicts returns the verdicts that Filter accepts.
func Verdicts() []string {
	return []string{string(analysis.Violation), string(analysis.NoEvidence), string(analysis.Inconclusive)}
}

// Filter selects audits.
type Filter struct {
	State, Verdict string // "" = any
	Limit          int    // 0 = no limit
	Cursor         string // of the page before; "" = the first page
}

// Listing is a selection of audits.
type Listing struct {
	rows    []Audit
	leftOut int    // beyond the limit
	next    string // cursor of the next page; "" = this is the last one
}

// List returns the audits that a filter selects, of audits in the order of Compare.
func List(all []Audit, f Filter) (Listing, error) {
	var l Listing
	var after position
	if f.Cursor != "" {
		var err error
		if after, err = parseCursor(f.Cursor); err != nil {
			return l, err
		}
	}
	for i := range all {
		a := &all[i]
		switch {
		case f.Cursor != "" && a.position().compare(after) <= 0:
		case f.State != "" && f.State != string(a.State), f.Verdict != "" && f.Verdict != a.Verdict:
		case f.Limit > 0 && len(l.rows) == f.Limit:
			l.leftOut++
			l.next = l.rows[len(l.rows)-1].position().cursor()
		default:
			l.rows = append(l.rows, *a)
		}
	}
	return l, nil
}

// Compare orders audits: violations first, then the latest query first.
func Compare(x, y *Audit) int { return x.position().compare(y.position()) }

// MarshalJSON writes audits and records as in the status, and how many are left out.
func (l Listing) MarshalJSON() ([]byte, error) {
	out := struct {
		Audits  []Audit   `json:"audits"`
		Records []*Record `json:"records,omitempty"`
		LeftOut int       `json:"left_out"`
		Next    string    `json:"next_cursor,omitempty"`
	}{Audits: []Audit{}, LeftOut: l.leftOut, Next: l.next}
	for _, a := range l.rows {
		if a.Record != nil {
			out.Records = append(out.Records, a.Record)
		} else {
			out.Audits = append(out.Audits, a)
		}
	}
	return json.Marshal(out)
}

// Write writes a table.
func (l Listing) Write(w io.Writer) error {
	var b strings.Builder
	table := show.NewTable(&b)
	table.Row("ID", "VERDICT OR STATE", "CLAIM", "LOWER BOUND", "ESTIMATE", "TRIALS", "SEEN", "LAST SEEN", "USER", "SUMMARY")
	for _, a := range l.rows {
		r := a.Result()
		state := a.Verdict
		switch {
		case a.Record != nil:
			state += " (evicted)"
		case a.Accepted != nil:
			state += " (accepted)"
		case a.Standing != nil && r.Verdict != analysis.Violation:
			state += " (" + string(a.State) + ")"
		}
		table.Row(a.ID, state, ClaimText(r.Claimed), a.BoundText(r), show.Estimate(r), fmt.Sprint(r.Trials.D0),
			fmt.Sprint(a.Seen), show.Moment(a.LastSeen), a.User, show.Shortened(a.Summary))
	}
	table.Flush()
	if len(l.rows) == 0 {
		b.Reset()
		b.WriteString("no audits\n")
	}
	if l.leftOut > 0 {
		fmt.Fprintf(&b, "left out: %d; --cursor %s lists the next ones, --limit 0 all\n", l.leftOut, l.next)
	}
	_, err := io.WriteString(w, show.Printable(b.String()))
	return err
}

// ShownIDs is the number of ids that an error lists.
const ShownIDs = 5

// ErrNoAudit is wrapped by the error for an id or key that no audit has.
var ErrNoAudit = errors.New("no audit")
