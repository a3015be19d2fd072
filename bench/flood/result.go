package flood

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"
)

// Result is what was measured.
type Result struct {
	Options
	Sent       int           // statements, the broken one included
	Took       time.Duration // of the flood
	Sight      time.Time     // when the broken query was sent
	FirstTrial time.Duration // from then to its first trial
	Found      time.Duration // from then to its violation; 0 = none
	// Of the auditor, a value per second.
	Memory, Resident []float64
	Held             []float64 // the audits' estimated part of it
	Limit            float64   // audit.memory

	// What the ledger has.
	Executions int // of all queries
	Unplaced   int // of them, those that are also in Skipped
	Skipped    map[string]int
	Queries    int
	Exact      int // texts of the flood with exactly the executions that were sent
	Over       int // queries with more executions than were sent
	Audits     int
	Tried      int // audits with trials
	// In bytes.
	Size, SizeAudits, SizeQueries, Progress int
}

// skipped returns how many statements the ledger has as skipped.
func (r *Result) skipped() (n int) {
	for _, m := range r.Skipped {
		n += m
	}
	return n
}

// Missing returns how many statements were sent and are not in the ledger; below 0 = it has too many.
func (r *Result) Missing() int { return r.Sent - (r.Executions - r.Unplaced + r.skipped()) }

// Check returns what is wrong, on a machine of any speed.
func (r *Result) Check() error {
	var errs []error
	if n := r.Missing(); n != 0 {
		errs = append(errs, fmt.Errorf("%d statements were sent, and the ledger lacks %d of them", r.Sent, n))
	}
	if r.Over > 0 {
		errs = append(errs, fmt.Errorf("the ledger has more executions of %d queries than were sent", r.Over))
	}
	if r.Found <= 0 {
		errs = append(errs, errors.New("the violation of the broken query is not in the ledger"))
	}
	if len(r.Memory) > 0 && slices.Max(r.Memory) > r.Limit {
		errs = append(errs, fmt.Errorf("the auditor's memory was up to %s, its limit is %s", megabytes(slices.Max(r.Memory)), megabytes(r.Limit)))
	}
	return errors.Join(errs...)
}

// quarter returns the mean of the nth quarter of values, from 0.
func quarter(values []float64, n int) float64 {
	part := values[n*len(values)/4 : (n+1)*len(values)/4]
	sum := 0.0
	for _, v := range part {
		sum += v
	}
	return sum / float64(max(1, len(part)))
}

func (r *Result) print(w io.Writer) {
	fmt.Fprintf(w, "%d distinct texts of %d shapes, %d executions each, one user, %d sessions, audit.workers %d; then a broken query of another shape.\n\n", r.Texts, r.Shapes, r.PerText, r.Sessions, r.Workers)
	fmt.Fprintln(w, "| quantity | measured |\n|---|---|")
	row := func(name, format string, args ...any) { fmt.Fprintf(w, "| "+name+" | "+format+" |\n", args...) }
	row("statements sent", "%d in %s: %.0f per second", r.Sent-1, seconds(r.Took), float64(r.Sent-1)/r.Took.Seconds())
	row("from the broken query to its first trial", "%s", seconds(r.FirstTrial))
	row("to its violation in the ledger", "%s", seconds(r.Found))
	for _, m := range []struct {
		name   string
		values []float64
	}{{"auditor's memory (Go)", r.Memory}, {"auditor's resident memory", r.Resident}, {"of them, the audits (estimated)", r.Held}} {
		if len(m.values) > 0 {
			row(m.name, "mean of the second quarter of the time %s, of the last %s; at most %s (audit.memory %s)", megabytes(quarter(m.values, 1)), megabytes(quarter(m.values, 3)), megabytes(slices.Max(m.values)), megabytes(r.Limit))
		}
	}
	row("queries in the ledger", "%d, of which %d have exactly the executions that were sent, %d more", r.Queries, r.Exact, r.Over)
	row("executions in the ledger by query", "%d, of which %d without a place", r.Executions, r.Unplaced)
	for _, reason := range slices.Sorted(maps.Keys(r.Skipped)) {
		row("skipped as `"+reason+"`", "%d", r.Skipped[reason])
	}
	row("statements that are in neither", "%d", r.Missing())
	row("audits in the ledger", "%d, %d with trials", r.Audits, r.Tried)
	row("size of the ledger", "%s: audits %s (%d bytes of evidence each), queries with their counts %s", megabytes(float64(r.Size)), megabytes(float64(r.SizeAudits)), r.Progress, megabytes(float64(r.SizeQueries)))
}
