package status

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/dpwatch/dpwatch/internal/app/show"
	"github.com/dpwatch/dpwatch/internal/audit/view"
	"github.com/dpwatch/dpwatch/internal/read"
)

// Snapshot is the status of a running dpwatch.
type Snapshot struct {
	JSON []byte // the answer of GET /api/status

	address string
	Relay   RelayStatus
	auditor *view.Status // nil = the auditor has not sent one
	Audits  []read.Audit // violations first, then by the time of the last query

	engines []*Snapshot // of several engines, if none was chosen; then the fields of one engine are empty
}

// Fetch asks a listener for the status of all engines or, if the target has the name of one, of that.
func Fetch(ctx context.Context, t Target) (*Snapshot, error) {
	text, err := t.Get(ctx, "/api/status")
	if err != nil {
		return nil, err
	}
	s, err := NewSnapshot(text)
	if err != nil {
		return nil, fmt.Errorf("%s does not answer with a status of dpwatch: %w", t.Address, err)
	}
	for _, one := range append(s.engines, s) {
		one.address = t.Address.String()
	}
	return s, nil
}

// NewSnapshot parses an answer of GET /api/status.
func NewSnapshot(text []byte) (*Snapshot, error) {
	s := &Snapshot{JSON: text}
	var all EnginesStatus
	if err := json.Unmarshal(text, &all); err != nil {
		return s, err
	}
	for _, one := range all.Engines {
		engine, err := NewSnapshot(one)
		if err != nil {
			return s, err
		}
		s.engines = append(s.engines, engine)
	}
	if s.engines != nil {
		return s, nil
	}
	err := json.Unmarshal(text, &s.Relay)
	if err == nil {
		err = json.Unmarshal(s.Relay.Audit, &s.auditor)
	}
	if err == nil && s.auditor != nil {
		s.Audits, err = audits(s.auditor, s.Relay.Engine, s.Relay.Audit)
	}
	return s, err
}

// shownReasons is the number of reasons in a line of a status.
const shownReasons = 5

// errChoose is the error of what concerns one engine if there are several.
func (s *Snapshot) errChoose() error {
	var names []string
	for _, one := range s.engines {
		names = append(names, one.Relay.Engine)
	}
	return fmt.Errorf("%s has several engines: choose one of %s with --engine", s.address, strings.Join(names, ", "))
}

// Write writes the status of each engine as text: a line for each part, then the violations.
func (s *Snapshot) Write(w io.Writer) error {
	for i, one := range s.engines {
		if i > 0 {
			if _, err := io.WriteString(w, "\n"); err != nil {
				return err
			}
		}
		if err := one.Write(w); err != nil {
			return err
		}
	}
	if s.engines != nil {
		return nil
	}
	var b strings.Builder
	fmt.Fprintf(&b, "dpwatch %s at %s, engine %s\n", s.Relay.Version, s.address, s.Relay.Engine)
	table := show.NewTable(&b)
	for _, p := range s.parts() {
		table.Row("  "+p.Name, p.Text)
	}
	table.Flush()
	if s.auditor != nil {
		writeWorkers(&b, s.auditor.Workers)
	}
	if found := s.violations(); len(found) > 0 {
		b.WriteString("\n")
		table = show.NewTable(&b)
		table.Row("ID", "SUMMARY", "USER", "CLAIM", "LOWER BOUND", "TRIALS", "FIRST SEEN", "ACCEPTED UNTIL")
		for i := range found {
			a := &found[i]
			table.Row(a.ID, show.Shortened(a.Summary), a.User, a.ClaimText(), a.BoundText(), fmt.Sprint(a.Trials()), show.Moment(a.FirstSeen), a.AcceptedUntil())
		}
		table.Flush()
	}
	_, err := io.WriteString(w, show.Printable(b.String()))
	return err
}

// auditorLine describes the auditor process.
func (s *Snapshot) auditorLine() string {
	p := s.Relay.Auditor
	if p.PID == 0 {
		return fmt.Sprintf("not running; started %d times", p.Starts)
	}
	text := fmt.Sprintf("running (PID %d)", p.PID)
	if !p.Since.IsZero() {
		text = fmt.Sprintf("running since %s (PID %d)", show.Moment(p.Since), p.PID)
	}
	if p.Starts > 1 {
		text += fmt.Sprintf(", started %d times", p.Starts)
	}
	if s.auditor == nil {
		return text + ", no status yet"
	}
	return text + fmt.Sprintf(", last heard %s ago", p.LastHeardAgo.Round(time.Second))
}

func (s *Snapshot) paceLine() string {
	switch {
	case s.auditor != nil && s.auditor.Observe:
		return "observing: nothing is replayed (audit.observe)"
	case s.auditor == nil || s.auditor.Pace == nil:
		if s.Relay.Paused {
			return "paused"
		}
		return "not known yet"
	case s.auditor.Pace.Held != "":
		return "held: " + s.auditor.Pace.Held
	}
	p := s.auditor.Pace
	text := fmt.Sprintf("trials run, %d sessions now", p.Sessions)
	if p.Limit > 0 {
		text += fmt.Sprintf(", limit %.3g", p.Limit)
	}
	for _, more := range []string{p.Default, p.Warning} {
		if more != "" {
			text += "; " + more
		}
	}
	return text
}

// skippedLine names the reasons for which most statements were skipped, by the relay or the auditor.
func (s *Snapshot) skippedLine() string {
	skipped := SkippedStatements(s.Relay.Proxy)
	if s.auditor != nil {
		for reason, n := range s.auditor.Skipped {
			skipped[reason] += n
		}
	}
	return sumLine(skipped)
}

// budgetLine describes what replays may use, what they used, and what waits for more.
func budgetLine(b *view.BudgetState) string {
	var parts []string
	if b.TrialsPerHour > 0 {
		parts = append(parts, fmt.Sprintf("%d trials per hour (%d since the start)", b.TrialsPerHour, b.Trials))
	}
	if b.SecondsPerHour > 0 {
		parts = append(parts, fmt.Sprintf("%g database seconds per hour (%.0f since the start)", b.SecondsPerHour, b.Seconds))
	}
	if !b.Since.IsZero() {
		parts = append(parts, fmt.Sprintf("since %s audits wait for it, %d now", show.Moment(b.Since), b.Waiting))
	}
	return strings.Join(parts, "; ")
}

func ledgerLine(l *view.LedgerState) string {
	if l == nil {
		return "none: audits are lost when the auditor process ends"
	}
	text := "in use"
	switch {
	case l.Trouble != "":
		text = "FAULT: " + l.Trouble
	case l.Holder != nil:
		text = fmt.Sprintf("another process (on %s) audits this engine; this one records what it captures for it", cmp.Or(l.Holder.Host, "an unknown host"))
		if l.OtherConfiguration {
			text += ", WHOSE CONFIGURATION DIFFERS"
		}
	case !l.Restored:
		text = "restoring; audits wait"
	}
	if n := len(l.Recorders); n > 0 {
		text += fmt.Sprintf("; %d other processes record for this one", n)
	}
	if l.Holder == nil && l.OtherConfiguration {
		text += ", one or more with ANOTHER CONFIGURATION"
	}
	text += fmt.Sprintf("; %d audits and %d counts not written yet", l.Unsaved, l.Waiting)
	if l.Lost > 0 {
		text += fmt.Sprintf(", %d observations lost", l.Lost)
	}
	if l.Removed != (view.Removed{}) {
		text += fmt.Sprintf("; older than ledger.retention and removed: %d queries, %d other rows", l.Removed.Queries, l.Removed.Rows)
	}
	return text
}

// statesLine counts audits by state.
func statesLine(audits []read.Audit) string {
	count := map[read.State]int{}
	for _, a := range audits {
		count[a.State]++
	}
	var parts []string
	for _, state := range read.States() {
		if count[state] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", count[state], state))
		}
	}
	if len(parts) == 0 {
		return "0"
	}
	return fmt.Sprintf("%d: %s", len(audits), strings.Join(parts, ", "))
}

// sumLine returns the sum of counts and the largest of them by name.
func sumLine(counts map[string]uint64) string {
	names := slices.SortedFunc(maps.Keys(counts), func(x, y string) int {
		return cmp.Or(cmp.Compare(counts[y], counts[x]), cmp.Compare(x, y))
	})
	var parts []string
	var sum, others uint64
	for i, name := range names {
		n := counts[name]
		switch sum += n; {
		case n == 0:
		case i < shownReasons:
			parts = append(parts, fmt.Sprintf("%s %d", name, n))
		default:
			others += n
		}
	}
	if others > 0 {
		parts = append(parts, fmt.Sprintf("others %d", others))
	}
	if len(parts) == 0 {
		return "0"
	}
	return fmt.Sprintf("%d: %s", sum, strings.Join(parts, ", "))
}
