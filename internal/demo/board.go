package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/app/setup"
	"github.com/dpwatch/dpwatch/internal/app/show"
	"github.com/dpwatch/dpwatch/internal/audit/view"
	"github.com/dpwatch/dpwatch/internal/read"
	"github.com/dpwatch/dpwatch/internal/showcase"
	"github.com/dpwatch/dpwatch/internal/terminal"
)

// board follows the audits of the planted queries. The client's sessions have the query's name as application_name,
// which matches an audit with its planted query.
type board struct {
	planted   []showcase.Query
	sequences map[string]bool // by name
	changed   chan struct{}   // capacity 1
	some      chan struct{}   // closed by Wait when a query has a verdict
	lines     *verdicts       // to which each verdict is written when it comes; nil = none

	mu     sync.Mutex // guards status
	status view.Status
}

func newBoard(queries []showcase.Query) *board {
	sequences := map[string]bool{}
	for _, q := range queries {
		sequences[q.Name] = q.Then != ""
	}
	return &board{planted: queries, sequences: sequences, changed: make(chan struct{}, 1), some: make(chan struct{})}
}

// sequenceMark is in the summaries of sequences alone.
const sequenceMark = " queries together: "

// Update receives the auditor's status as JSON.
func (b *board) Update(data []byte) {
	var s view.Status
	if json.Unmarshal(data, &s) != nil {
		return
	}
	b.mu.Lock()
	b.status = s
	b.mu.Unlock()
	select {
	case b.changed <- struct{}{}:
	default:
	}
}

func (b *board) snapshot() (view.Status, map[string]read.Audit) {
	b.mu.Lock()
	defer b.mu.Unlock()
	byName := make(map[string]read.Audit, len(b.status.Audits))
	for _, e := range b.status.Audits {
		if b.sequences[e.App] == strings.Contains(e.Summary, sequenceMark) { // the queries of a sequence are audited alone, too
			byName[e.App] = e
		}
	}
	return b.status, byName
}

// progressOf returns the number of decided planted DP queries, their total number, and the trials so far.
func (b *board) progressOf() (decided, total, trials int) {
	_, byName := b.snapshot()
	for _, q := range b.planted {
		if q.WantVerdict == "" {
			continue
		}
		total++
		e, ok := byName[q.Name]
		if ok && (e.State == read.Decided || e.State == read.Measuring && b.lines == nil) {
			decided++
		}
		if ok && e.Report != nil {
			trials += e.Report.Trials.D0
		}
	}
	return decided, total, trials
}

// Wait shows progress until every planted DP query is decided.
func (b *board) Wait(ctx context.Context, screen *terminal.Screen, maxTrials int) error {
	defer screen.Done()
	began := time.Now()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	first := sync.OnceFunc(func() { close(b.some) })
	for {
		decided, total, trials := b.progressOf()
		if decided > 0 {
			first()
		}
		if b.lines == nil || b.lines.write(b.Result().Rows) {
			screen.Progress(decided, total, trials, time.Since(began))
		}
		if decided == total {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-b.changed:
		case <-tick.C:
		}
	}
}

// Line is the result of one planted query.
type Line struct {
	ID       string           `json:"id,omitempty"` // of the audit
	Name     string           `json:"name"`
	Note     string           `json:"note"`
	Planted  string           `json:"planted"` // verdict, or "not audited"
	Found    string           `json:"found"`
	AsWanted bool             `json:"as_planted"`
	Report   *analysis.Report `json:"report,omitempty"`
	Trouble  string           `json:"trouble,omitempty"`
	// Of a violation: whom it concerns, and what to do.
	Who string `json:"who,omitempty"`
	Now string `json:"now,omitempty"`

	decided bool
}

// Result compares the planted verdicts with those found, and says what else happened during the demo.
type Result struct {
	Rows       []Line            `json:"queries"`
	Skipped    map[string]uint64 `json:"skipped"`
	Statements int               `json:"client_statements"`
	Failures   int               `json:"client_failures"`
	Auditors   uint64            `json:"auditor_starts"`
	Seconds    float64           `json:"seconds"`
	OK         bool              `json:"ok"`
}

const notAudited = "not audited"

// Result compares the planted verdicts with those found.
func (b *board) Result() *Result {
	status, byName := b.snapshot()
	r := &Result{Skipped: status.Skipped, OK: true}
	for _, q := range b.planted {
		row := Line{Name: q.Name, Note: q.Note, Planted: q.WantVerdict, Found: notAudited}
		if q.WantVerdict == "" {
			row.Planted = notAudited
		}
		if e, ok := byName[q.Name]; ok {
			row.ID, row.Found, row.Report, row.Trouble = e.ID, e.Verdict, e.Report, e.Trouble
			row.decided = e.State == read.Decided
			row.answer(e)
		}
		row.AsWanted = row.Planted == row.Found
		r.OK = r.OK && row.AsWanted
		r.Rows = append(r.Rows, row)
	}
	return r
}

// answer sets Who and Now of a violation.
func (l *Line) answer(e read.Audit) {
	if e.Verdict != string(analysis.Violation) {
		return
	}
	l.Who = fmt.Sprintf("the person that %s lacks; asked %d times by %s", e.Neighbour, e.Seen, e.User)
	l.Now = "docs/findings.md"
	if f := e.Report.Finding; f != nil && len(f.Causes) > 0 {
		l.Now = f.Causes[0].Page
	}
}

// Write prints the result; the error carries the exit status.
func (r *Result) Write(env setup.Environment, js bool) error {
	r.OK = r.OK && r.Failures == 0
	var err error
	if js {
		encoder := json.NewEncoder(env.Stdout)
		encoder.SetIndent("", "  ")
		err = encoder.Encode(r)
	} else {
		_, err = fmt.Fprint(env.Stdout, r.String())
	}
	if err != nil {
		return err
	}
	if !r.OK {
		return errNotAsPlanted
	}
	return nil
}

// withFindings adds a second line to the queries with a finding. table has a header and one line for each query.
func (r *Result) withFindings(table string) string {
	var b strings.Builder
	i := -1 // the header
	for line := range strings.Lines(table) {
		b.WriteString(line)
		if i >= 0 && i < len(r.Rows) && r.Rows[i].Report != nil && r.Rows[i].Report.Finding != nil {
			fmt.Fprintf(&b, "    %s; who: %s; fix: %s\n", r.Rows[i].Report.Finding.Line, r.Rows[i].Who, r.Rows[i].Now)
		}
		i++
	}
	return b.String()
}

// String returns the result as a table.
func (r *Result) String() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "QUERY\tCLAIM\tSOURCE\tTRIALS\tESTIMATE\tLOWER\tVERDICT\tAS PLANTED")
	for _, row := range r.Rows {
		mark := "yes"
		if !row.AsWanted {
			mark = "NO, expected " + row.Planted
		}
		if row.Report == nil {
			fmt.Fprintf(w, "%s\t-\t-\t-\t-\t-\t%s\t%s\n", row.Name, row.Found, mark)
			continue
		}
		p := row.Report
		fmt.Fprintf(w, "%s\t%g\t%s\t%d\t%s\t%s\t%s\t%s\n",
			row.Name, float64(p.Claimed.Epsilon), p.Claimed.Source, p.Trials.D0, show.Estimate(*p), analysis.LowerText(p.EpsilonLower, p.Claimed.Epsilon), row.Found, mark)
	}
	_ = w.Flush() // writes to a strings.Builder
	table := r.withFindings(b.String())
	b.Reset()
	b.WriteString(table)
	for _, row := range r.Rows {
		if row.Trouble != "" {
			fmt.Fprintf(&b, "%s: %s\n", row.Name, row.Trouble)
		}
	}
	fmt.Fprintf(&b, "\nThe client ran %d statements through the proxy, %d failed unexpectedly. %.0f s.\n", r.Statements, r.Failures, r.Seconds)
	if r.Auditors > 1 {
		fmt.Fprintf(&b, "The auditor process was started %d times, without an effect on the client.\n", r.Auditors)
	}
	fmt.Fprintf(&b, "LOWER is certified at confidence %g; ESTIMATE, by buckets, has no confidence statement. No evidence is not a proof of privacy.\n", confidence)
	return b.String()
}
