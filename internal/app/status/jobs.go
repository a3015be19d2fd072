package status

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/dpwatch/dpwatch/internal/app/show"
	"github.com/dpwatch/dpwatch/internal/read"
)

// Job is what the auditor of one engine does.
type Job struct {
	Engine  string
	Paused  bool
	Parts   []Part       // what limits replays, and what they cost
	Audits  []PendingRow // without a verdict, or measuring: those that have their trials first
	LeftOut int          // audits beyond those listed
	Workers []WorkerRow  // on other machines
	Fault   string       // why nothing is known
}

// PendingRow is an audit that has trials, or waits for them.
type PendingRow struct {
	ID, Summary, State, Worker string
	For                        string // what it waits for; "" = nothing
	Trials                     int
	waits                      bool
}

// WorkerRow is a worker on another machine.
type WorkerRow struct {
	ID, Host, Version string
	Slots, Turns      int
	Heard             string
	Refused           string // why it gets no turns
}

// shownPending is the number of audits of a Job.
const shownPending = 200

// Job returns what the auditor of the engine does.
func (s *Snapshot) Job() Job {
	j := Job{Engine: s.Relay.Engine, Paused: s.Relay.Paused}
	if s.auditor == nil {
		j.Fault = show.Printable(s.auditorLine())
		return j
	}
	add := func(name, text string) { j.Parts = append(j.Parts, Part{Name: name, Text: show.Printable(text)}) }
	add("pace", s.paceLine())
	if b := s.auditor.Budget; b != nil {
		add("budget", budgetLine(b))
	}
	add("audits", statesLine(s.auditor.Audits))
	add("memory", fmt.Sprintf("the audits take about %d MiB", s.auditor.Memory.Audits>>20))
	if t := s.auditor.Turns; t != nil {
		add("turns of workers", workersLine(s.auditor))
	}
	for i := range s.auditor.Audits {
		a := &s.auditor.Audits[i]
		if a.State != read.Decided {
			j.Audits = append(j.Audits, pendingRow(a))
		}
	}
	slices.SortStableFunc(j.Audits, func(x, y PendingRow) int {
		if x.waits != y.waits {
			return cmp.Compare(len(x.For), len(y.For))
		}
		return cmp.Compare(y.Trials, x.Trials)
	})
	if n := len(j.Audits) - shownPending; n > 0 {
		j.Audits, j.LeftOut = j.Audits[:shownPending], n
	}
	for _, w := range s.auditor.Workers {
		j.Workers = append(j.Workers, WorkerRow{w.ID, show.Printable(w.Host), w.Version, w.Slots, w.Turns, w.Silent.Round(time.Second).String() + " ago", show.Printable(w.Refused)})
	}
	return j
}

func pendingRow(a *read.Audit) PendingRow {
	row := PendingRow{ID: a.ID, Summary: show.Printable(a.Summary), State: show.Words(string(a.State)), Worker: a.Worker}
	if a.Report != nil {
		row.Trials = a.Report.Trials.D0
	}
	if a.WaitingFor != nil {
		row.For, row.waits = a.WaitingFor.String(), true
	}
	if a.Trouble != "" {
		row.For = show.Printable(a.Trouble)
	}
	return row
}
