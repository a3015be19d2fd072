package demo

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/analysis/diagnosis"
	"github.com/dpwatch/dpwatch/internal/app/setup"
	"github.com/dpwatch/dpwatch/internal/showcase"
	"github.com/dpwatch/dpwatch/internal/terminal"
)

// inFirstMinute are the planted queries whose audits fit into the first minute, in the order in which the client first
// sends them: one for each kind of leak, that with the quickest verdict first, and honest ones.
var inFirstMinute = []string{
	"same noise every time", "half the noise", "group of one person", "NULL for an empty set", "one person in all stores", "sum not clipped",
	"count of users", "count by setting",
}

// firstMinute returns those that are not audited, and the queries of the first minute in their order.
func firstMinute(all []showcase.Query) []showcase.Query {
	place := func(q showcase.Query) int { return slices.Index(inFirstMinute, q.Name) }
	all = slices.DeleteFunc(all, func(q showcase.Query) bool { return q.WantVerdict != "" && place(q) < 0 })
	slices.SortStableFunc(all, func(a, b showcase.Query) int { return cmp.Compare(place(a), place(b)) })
	return all
}

// openLog returns where logs go: with --all, and beside JSON, the screen, otherwise a file of the demo's directory, which
// then has the configuration, too.
func openLog(screen *terminal.Screen, o Options, configuration []byte) (io.WriteCloser, error) {
	if o.All || o.JSON {
		return screenLog{screen}, nil
	}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("the demo keeps its configuration and its log in a directory: %w; name another one with --dir", err)
	}
	if err := os.WriteFile(filepath.Join(o.Dir, "dpwatch.yaml"), configuration, 0o600); err != nil {
		return nil, fmt.Errorf("the demo's configuration: %w; name another directory with --dir", err)
	}
	f, err := os.OpenFile(filepath.Join(o.Dir, "dpwatch.log"), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("the demo's log: %w; name another directory with --dir", err)
	}
	screen.Say(fmt.Sprintf("configuration and log in %s", o.Dir))
	return f, nil
}

type screenLog struct{ *terminal.Screen }

func (screenLog) Close() error { return nil }

// verdicts writes a line for each verdict when it comes.
type verdicts struct {
	w        io.Writer
	screen   *terminal.Screen
	progress bool // is shown between the lines
	colours  bool
	written  map[string]bool
}

func newVerdicts(env setup.Environment, screen *terminal.Screen) *verdicts {
	fmt.Fprintf(env.Stdout, "\nEach query runs with (D0) and without (D1) one person.\n\n     %-24s %-6s %-8s %s\n", "QUERY", "CLAIM", "PROVEN", "WHY")
	return &verdicts{env.Stdout, screen, terminal.Interactive(env.Stderr), terminal.Interactive(env.Stdout) && env.Getenv("NO_COLOR") == "", map[string]bool{}}
}

// write writes the lines of the audits that have a verdict now. It reports whether progress is to be shown.
func (v *verdicts) write(rows []Line) bool {
	for _, row := range rows {
		if row.Planted == notAudited || !row.decided || v.written[row.Name] {
			continue
		}
		v.written[row.Name] = true
		v.screen.Done()
		fmt.Fprintln(v.w, row.verdict(v.colours))
	}
	return v.progress
}

// columns is the greatest length of a line.
const columns = 80

// verdict describes the result of an audit in one line.
func (l *Line) verdict(colours bool) string {
	mark, colour, proven, why := "?", "33", "-", "no conclusion"
	if r := l.Report; r != nil {
		switch r.Verdict {
		case analysis.Violation:
			mark, colour, why = "x", "31", "gives the person away"
			if f := r.Finding; f != nil && len(f.Causes) > 0 {
				why = reasons[f.Causes[0].Code]
			}
			if r.HasBound() {
				proven = proof(r)
			}
		case analysis.NoEvidence:
			mark, colour, proven, why = "ok", "32", proof(r), "none found (not a proof)"
		}
	}
	if !l.AsWanted {
		mark, why = "!!", "not as planted: "+l.Planted
	}
	text := []rune(fmt.Sprintf("%-24s %-6s %-8s %s", l.Name, l.claim(), proven, why))
	if most := columns - len("  ok "); len(text) > most {
		text = append(text[:most-1], '…')
	}
	mark = fmt.Sprintf("%-2s", mark)
	if colours {
		mark = "\x1b[" + colour + "m" + mark + "\x1b[0m"
	}
	return "  " + mark + " " + string(text)
}

func (l *Line) claim() string {
	if l.Report == nil {
		return "-"
	}
	return fmt.Sprintf("%g", float64(l.Report.Claimed.Epsilon))
}

// proof returns the lower bound: ">= 2.9", or "> 1".
func proof(r *analysis.Report) string {
	text := analysis.LowerText(r.EpsilonLower, r.Claimed.Epsilon)
	if strings.HasPrefix(text, ">") {
		return text
	}
	return ">= " + text
}

// reasons are the causes in a few words.
var reasons = map[diagnosis.Code]string{
	diagnosis.NoiseScale: "too little noise for one person", diagnosis.NoiseFamily: "noise of another family",
	diagnosis.Clipping: "values are not clipped", diagnosis.ContributionBounds: "one person has too many rows",
	diagnosis.Composition: "columns and groups add up", diagnosis.DataDependentScale: "the noise depends on the data",
	diagnosis.PartitionSelection: "a group exists for one person", diagnosis.EmptySet: "an empty set answers otherwise",
	diagnosis.SeedOrCache: "the same noise every time", diagnosis.SharedNoise: "noise is shared",
	diagnosis.Support: "the ends of the noise show it", diagnosis.Rounding: "rounded too late, or not at all",
	diagnosis.FloatingPoint: "the lowest digits show it", diagnosis.RandomisedResponse: "answers are flipped too seldom",
	diagnosis.RowOrder: "the order of rows shows it", diagnosis.AnswerForm: "digits or words show it",
	diagnosis.ExactTotal: "groups add up to the true total", diagnosis.Aggregate: "the largest group is exact",
	diagnosis.ErrorOnData: "an error shows it", diagnosis.NotANumber: "a NaN or infinity shows it",
}

// sumUp prints what was found in one line, and what to do next; the error carries the exit status.
func (r *Result) sumUp(w io.Writer, o Options, admin string) error {
	leaks, found, alarms, undecided := 0, 0, 0, 0
	first := ""
	for _, row := range r.Rows {
		switch {
		case row.Planted == showcase.Violation:
			if leaks++; row.AsWanted {
				found++
				if first == "" {
					first = row.ID
				}
			}
		case row.Planted == showcase.NoEvidence && row.Found == showcase.Violation:
			alarms++
		case !row.AsWanted:
			undecided++
		}
	}
	fmt.Fprintf(w, "\n%d of %d planted leaks found, %d false alarms, %.0f s\n", found, leaks, alarms, r.Seconds)
	if undecided > 0 {
		fmt.Fprintf(w, "%d honest queries have no verdict\n", undecided)
	}
	if r.Failures > 0 {
		fmt.Fprintf(w, "%d of %d statements of the client failed unexpectedly\n", r.Failures, r.Statements)
	}
	next := func(what, how string) { fmt.Fprintf(w, "  %-8s %s\n", what, how) }
	if o.Keep {
		next("Look", "http://"+admin)
		if first != "" {
			next("Why?", fmt.Sprintf("dpwatch explain %s -c %s", first, filepath.Join(o.Dir, "dpwatch.yaml")))
		}
	} else {
		next("Look", "make demo ARGS=--keep, with pages and psql, until Ctrl-C")
	}
	next(fmt.Sprintf("All %d", audited(showcase.Queries())), "make demo ARGS=--all")
	if found < leaks || alarms+undecided+r.Failures > 0 {
		return errNotAsPlanted
	}
	return nil
}

// audited counts the queries that are audited.
func audited(all []showcase.Query) (n int) {
	for _, q := range all {
		if q.WantVerdict != "" {
			n++
		}
	}
	return n
}

var errNotAsPlanted = errors.New("a verdict is not as planted, or a client statement failed unexpectedly")
