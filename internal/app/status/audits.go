package status

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/app/oneoff"
	"github.com/dpwatch/dpwatch/internal/app/show"
	"github.com/dpwatch/dpwatch/internal/audit/view"
	"github.com/dpwatch/dpwatch/internal/finding"
	"github.com/dpwatch/dpwatch/internal/ledger"
)

// evicted is the state of a violation whose audit was evicted: the status has only a record of it.
const evicted view.State = "evicted"

// AuditRow is an audit of a Snapshot, or the record of an evicted one.
type AuditRow struct {
	view.Entry
	record bool
	json   json.RawMessage // as in the answer
}

// auditRows returns the audits and records of a status, of which text is the JSON.
func auditRows(s *view.Status, text json.RawMessage) ([]AuditRow, error) {
	var raw struct{ Audits, Records []json.RawMessage }
	if err := json.Unmarshal(text, &raw); err != nil {
		return nil, err
	}
	var rows []AuditRow
	for i, e := range s.Audits {
		rows = append(rows, AuditRow{Entry: e, json: raw.Audits[i]})
	}
	for i, r := range s.Records {
		report := analysis.Refused(analysis.Claim{Epsilon: float64(r.Claimed)}, 0, "")
		report.Verdict, report.EpsilonLower, report.Trials = analysis.Violation, r.Lower, analysis.Trials{D0: r.Trials, D1: r.Trials}
		rows = append(rows, AuditRow{record: true, json: raw.Records[i], Entry: view.Entry{
			ID: r.ID, Key: r.ID, Route: r.Route, Group: r.Group, Summary: r.Summary, User: r.User, Database: r.Database, Neighbour: r.Neighbour, Accepted: r.Accepted,
			Seen: r.Seen, FirstSeen: r.FirstSeen, LastSeen: r.LastSeen, State: evicted, Verdict: string(analysis.Violation), Report: &report,
		}})
	}
	slices.SortStableFunc(rows, func(x, y AuditRow) int { return x.position().compare(y.position()) })
	return rows, nil
}

// Violation reports whether the audit has a violation that is not resolved.
func (a *AuditRow) Violation() bool {
	s := a.Status()
	return s == finding.Open || s == finding.Accepted
}

// Result returns the report, without figures if there is none.
func (a *AuditRow) Result() analysis.Report {
	if a.Report != nil {
		return *a.Report
	}
	r := analysis.Refused(analysis.Claim{Epsilon: math.NaN()}, 0, "")
	r.Verdict = ""
	return r
}

func (s *Snapshot) violations() []AuditRow {
	i := slices.IndexFunc(s.Audits, func(a AuditRow) bool { return !a.Violation() })
	if i < 0 {
		return s.Audits
	}
	return s.Audits[:i]
}

// States returns the states that Filter accepts.
func States() []string {
	var out []string
	for _, s := range append(view.States(), evicted) {
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
	rows    []AuditRow
	leftOut int    // beyond the limit
	next    string // cursor of the next page; "" = this is the last one
}

// List returns the audits that a filter selects, violations first.
func (s *Snapshot) List(f Filter) (Listing, error) {
	if s.engines != nil {
		return Listing{}, s.errChoose()
	}
	if s.auditor == nil {
		return Listing{}, errNoAuditor(s.address)
	}
	var l Listing
	var after position
	if f.Cursor != "" {
		var err error
		if after, err = parseCursor(f.Cursor); err != nil {
			return l, err
		}
	}
	for _, a := range s.Audits {
		switch {
		case f.Cursor != "" && a.position().compare(after) <= 0:
		case f.State != "" && f.State != string(a.State), f.Verdict != "" && f.Verdict != a.Verdict:
		case f.Limit > 0 && len(l.rows) == f.Limit:
			l.leftOut++
			l.next = l.rows[len(l.rows)-1].position().cursor()
		default:
			l.rows = append(l.rows, a)
		}
	}
	return l, nil
}

func errNoAuditor(address string) error {
	return fmt.Errorf("the auditor of %s has not sent its status yet: repeat the command, or see the log of dpwatch", address)
}

// MarshalJSON writes audits and records as in the status, and how many are left out.
func (l Listing) MarshalJSON() ([]byte, error) {
	out := struct {
		Audits  []json.RawMessage `json:"audits"`
		Records []json.RawMessage `json:"records,omitempty"`
		LeftOut int               `json:"left_out"`
		Next    string            `json:"next_cursor,omitempty"`
	}{Audits: []json.RawMessage{}, LeftOut: l.leftOut, Next: l.next}
	for _, a := range l.rows {
		if a.record {
			out.Records = append(out.Records, a.json)
		} else {
			out.Audits = append(out.Audits, a.json)
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
		case a.record:
			state += " (evicted)"
		case a.Accepted != nil:
			state += " (accepted)"
		case a.Standing != nil && r.Verdict != analysis.Violation:
			state += " (" + string(a.State) + ")"
		}
		table.Row(a.ID, state, ClaimText(r.Claimed), a.boundText(r), show.Estimate(r), fmt.Sprint(r.Trials.D0),
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

// ErrNoAudit is wrapped by the error of Snapshot.Audit if there is no such audit.
var ErrNoAudit = errors.New("no audit")

// Audit returns the audit whose id or key begins with prefix, of any engine.
func (s *Snapshot) Audit(prefix string) (AuditRow, error) {
	if s.auditor == nil && s.engines == nil {
		return AuditRow{}, errNoAuditor(s.address)
	}
	audits := s.Audits
	for _, one := range s.engines {
		audits = append(audits, one.Audits...)
	}
	var found []AuditRow
	for _, a := range audits {
		if prefix != "" && (strings.HasPrefix(a.Key, prefix) || strings.HasPrefix(a.ID, prefix)) {
			found = append(found, a)
		}
	}
	switch len(found) {
	case 0:
		return AuditRow{}, fmt.Errorf("%s has %w %q: dpwatch audits list lists them", s.address, ErrNoAudit, prefix)
	case 1:
		return found[0], nil
	}
	var ids []string
	for _, a := range found[:min(ShownIDs, len(found))] {
		ids = append(ids, cmp.Or(a.Key, a.ID))
	}
	return AuditRow{}, fmt.Errorf("%d audits begin with %q: give more digits; for example %s", len(found), prefix, strings.Join(ids, ", "))
}

// MarshalJSON writes the audit as in the status.
func (a AuditRow) MarshalJSON() ([]byte, error) {
	if a.json == nil { // from the ledger
		return json.Marshal(a.Entry)
	}
	return a.json, nil
}

// Write writes everything about an audit but its verdict as text.
func (a AuditRow) Write(w io.Writer) error {
	var b strings.Builder
	r := a.Result()
	show.Section(&b, "query", a.queryRows())
	b.WriteString("\nevidence\n")
	if a.record || r.Confidence == 0 {
		why := "the evidence is not at hand: only these figures are"
		if a.record {
			why = "the audit was evicted after it found the violation: only these figures are left"
		}
		show.Section(&b, "", [][2]string{
			{"", why},
			{"claimed", "epsilon " + ClaimText(r.Claimed)},
			{"epsilon lower bound", show.Number(r.EpsilonLower)},
			{"trials", fmt.Sprint(r.Trials.D0)},
			{"neighbour", a.Neighbour},
		})
	} else if err := (oneoff.Conclusion{Report: r, Neighbour: a.Neighbour, Neighbours: a.Neighbours, Hoisting: a.Hoisting, Timing: a.Timing}).Write(&b); err != nil {
		return err
	}
	if h := a.Hoisting; h != nil && !h.Hoisted && h.Reason != "" {
		show.Section(&b, "hoisting", [][2]string{{"not hoisted", h.Reason}})
	}
	var assumed, neighbours, partitions [][2]string
	for _, text := range a.Assumed {
		assumed = append(assumed, [2]string{"", text})
	}
	show.Section(&b, "assumptions of the rewrite", assumed)
	for _, n := range a.Neighbours {
		verdict := strings.ReplaceAll(cmp.Or(string(n.Verdict), "no verdict yet"), "_", " ")
		neighbours = append(neighbours, [2]string{n.Schema, fmt.Sprintf("%s, lower bound %s, estimate %s", verdict, show.Number(n.Lower), show.Estimate(analysis.Report{EpsilonEstimate: n.Estimate, EpsilonLower: n.Lower}))})
	}
	show.Section(&b, "neighbours", neighbours)
	if len(r.Partitions) > 1 {
		for _, p := range r.Partitions {
			partitions = append(partitions, [2]string{p.Key.String(), "estimate " + show.Number(p.EpsilonEstimate)})
		}
	}
	show.Section(&b, fmt.Sprintf("groups: %d of %d, those with the largest estimates", len(partitions), a.Partitions), partitions)
	_, err := io.WriteString(w, show.Printable(b.String()))
	return err
}

// queryRows returns what is known of the query.
func (a *AuditRow) queryRows() [][2]string {
	rows := [][2]string{
		{"summary", a.Summary},
		{"user", a.User},
		{"database", a.Database},
		{"application", a.App},
		{"engine", a.Route},
		{"executions", fmt.Sprintf("%d, first %s, last %s", a.Seen, show.Moment(a.FirstSeen), show.Moment(a.LastSeen))},
		{"state", string(a.State)},
		{"trouble", a.Trouble},
		{"key", a.Key},
		{"fingerprint", a.Group},
		{"rule of the claim", a.ClaimRule},
		{"neighbour", a.Neighbour},
	}
	if to := ledger.DestinationsText(a.Destinations); to != "" {
		rows = append(rows, [2]string{"answers went", to})
	}
	if a.Restarts > 0 {
		rows = append(rows, [2]string{"restarts", fmt.Sprintf("%d: the copies were created again", a.Restarts)})
	}
	if w := a.WaitingFor; w != nil {
		rows = append(rows, [2]string{"waiting for", waitingText(w)})
	}
	if a.Changes > 0 {
		rows = append(rows, [2]string{"changes", fmt.Sprintf("%d alarms of the change detector, the last %s: the audit began again; the verdict before: %s", a.Changes, show.Moment(a.Changed), strings.ReplaceAll(string(a.Previous), "_", " "))})
	}
	if w := a.Watch; w != nil {
		rows = append(rows, [2]string{"watched", fmt.Sprintf("%d pairs of trials since the verdict; evidence of a change %s, alarm at %s", w.Trials, show.Number(w.Evidence), show.Number(w.Alarm))})
	}
	if a.Repeats > 0 {
		rows = append(rows, [2]string{"repeats", fmt.Sprintf("%d, because audit.repeat had passed; the verdict before: %s", a.Repeats, strings.ReplaceAll(string(a.Previous), "_", " "))})
	}
	if c := a.Accepted; c != nil {
		rows = append(rows, [2]string{"accepted", AcceptedText(c)})
	}
	rows = append(rows, a.engineRows()...)
	if a.SQL != nil {
		rows = append(rows, [2]string{"SQL on D0", a.SQL.D0}, [2]string{"SQL on D1", a.SQL.D1})
	}
	return slices.DeleteFunc(rows, func(r [2]string) bool { return r[1] == "" })
}

// waitingText describes why an audit has no turn.
func waitingText(w *view.WaitingFor) string {
	text := map[string]string{
		"turn": "its turn", "budget": "the budget of replays per hour (audit.budget)", "ledger": "the ledger", "shadow_database": "the shadow database",
		"replays_held": "replays, which are held (dpwatch status has the reason)", "watch_share": "its turn in audit.watch_share, in which it is repeated",
		"retry": "another attempt after a fault of its replays",
	}[w.Reason]
	text = cmp.Or(text, w.Reason)
	if w.Position > 0 {
		text += fmt.Sprintf(", about number %d of %d", w.Position, w.Of)
	}
	if text += ", since " + show.Moment(w.Since); !w.Until.IsZero() {
		text += "; next attempt " + show.Moment(w.Until)
	}
	return text
}

// ClaimText formats a claim; "-" without one.
func ClaimText(c analysis.Claimed) string {
	switch {
	case math.IsNaN(float64(c.Epsilon)):
		return "-"
	case c.Delta > 0:
		return fmt.Sprintf("%g, delta %g", float64(c.Epsilon), c.Delta)
	}
	return fmt.Sprintf("%g", float64(c.Epsilon))
}

// BoundText formats the lower bound; a violation by deterministic answers has none.
func BoundText(r analysis.Report) string {
	if r.Verdict == analysis.Violation && r.Deterministic != nil && r.DetectedAt == nil {
		return "deterministic"
	}
	return show.Number(r.EpsilonLower)
}
