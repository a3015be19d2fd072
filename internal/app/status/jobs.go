package status

import (
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
	Audits  []read.Audit // without a verdict, or measuring: those that have their trials first
	LeftOut int          // audits beyond those listed
	Workers []WorkerRow  // on other machines
	Fault   string       // why nothing is known
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
		add("replay budget", budgetLine(b))
	}
	add("audits", statesLine(s.auditor.Audits))
	add("memory", fmt.Sprintf("the audits take about %d MiB", s.auditor.Memory.Audits>>20))
	if t := s.auditor.Turns; t != nil {
		add("turns of workers", workersLine(s.auditor))
	}
	pending := slices.DeleteFunc(slices.Clone(s.auditor.Audits), func(a read.Audit) bool { return a.State == read.Decided })
	first, _ := read.Select(pending, read.Filter{Sort: read.Pending, Limit: shownPending}) // there is such an order
	j.Audits, j.LeftOut = first.Audits, first.Left
	for _, w := range s.auditor.Workers {
		j.Workers = append(j.Workers, WorkerRow{w.ID, show.Printable(w.Host), w.Version, w.Slots, w.Turns, w.Silent.Round(time.Second).String() + " ago", show.Printable(w.Refused)})
	}
	return j
}
