package main

import (
	"fmt"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/dpwatch/dpwatch/analysis"
)

// columns are the values of a result, in the order of the tables.
func (r result) columns() []string {
	claim := fmt.Sprintf("%g", r.report.Claimed.Epsilon)
	if r.report.Claimed.Delta > 0 {
		claim += fmt.Sprintf(", %.2g", r.report.Claimed.Delta)
	}
	bound, estimate, cause, shift, tenth := "", "", "", "", ""
	if r.report.Verdict == "no_evidence" {
		shift, tenth = atLeast(r.report.Detectable), atLeast(r.report.InTenth)
	}
	if r.report.Verdict == "violation" {
		bound, estimate, cause = analysis.LowerText(analysis.Float(r.report.Lower), analysis.Float(r.report.Claimed.Epsilon)), "∞", r.report.cause()
		switch e := r.report.Epsilon; {
		case e != nil && *e < r.report.Lower:
			estimate = "" // its buckets miss what the bets find
		case e != nil:
			estimate = fmt.Sprintf("%.1f", *e)
		}
		if r.query.cause == "open" && cause != "none" || r.query.cause != "open" && cause != r.query.cause {
			cause += " (wrong: " + r.query.cause + ")"
		}
	}
	return []string{r.engine, r.version, r.query.name, claim, r.report.Verdict, fmt.Sprint(r.report.pairs()), fmt.Sprintf("%.0f", r.seconds), bound, estimate, cause, shift, tenth}
}

// atLeast is the least true epsilon that would have been found.
func atLeast(epsilon *float64) string {
	if epsilon == nil {
		return "-"
	}
	return fmt.Sprintf("%.2f", *epsilon)
}

var header = []string{"engine", "version", "query", "claim", "verdict", "pairs", "seconds", "bound", "estimate", "cause named", "would find", "in a tenth"}

// line is a result as it is printed when the audit has ended.
func (r result) line() string {
	text := strings.Join(r.columns(), " | ")
	for _, missed := range r.missed {
		text += "\n  audited again after: " + missed
	}
	if r.fault != "" {
		text += "\n  NOT AS EXPECTED: " + r.fault
	}
	return text
}

// table is the table that is printed at the end.
func table(results []result) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, strings.Join(header, "\t"))
	for _, r := range results {
		fmt.Fprintln(w, strings.Join(r.columns(), "\t")+"\t"+r.fault)
	}
	_ = w.Flush()
	return b.String()
}

// writeFound writes the results into the page between its markers, which name the three tables.
func writeFound(path string, results []result) error {
	page, err := os.ReadFile(path) //nolint:gosec // of the repository
	if err != nil {
		return err
	}
	text := string(page)
	for name, belongs := range map[string]func(result) bool{
		"known":  func(r result) bool { return !r.query.honest && r.query.known != "new" },
		"new":    func(r result) bool { return !r.query.honest && r.query.known == "new" },
		"honest": func(r result) bool { return r.query.honest },
	} {
		begin, end := "<!-- "+name+": make engines ARGS=-write -->\n", "<!-- end -->"
		before, rest, ok := strings.Cut(text, begin)
		_, after, ok2 := strings.Cut(rest, end)
		if !ok || !ok2 {
			return fmt.Errorf("%s has no table between %q and %q", path, begin, end)
		}
		text = before + begin + markdown(results, name, belongs) + end + after
	}
	return os.WriteFile(path, []byte(text), 0o644) //nolint:gosec // a page
}

// markdown is one table of docs/found.md.
func markdown(results []result, name string, belongs func(result) bool) string {
	head := header
	if name == "known" {
		head = append(head[:len(head):len(head)], "known from")
	}
	rows := [][]string{head, strings.Split(strings.Repeat("---,", len(head)-1)+"---", ",")}
	for _, r := range results {
		if !belongs(r) {
			continue
		}
		row := r.columns()
		if name == "known" {
			row = append(row, reference(r.query.known))
		}
		rows = append(rows, row)
	}
	var b strings.Builder
	for _, row := range rows {
		b.WriteString("| " + strings.Join(row, " | ") + " |\n")
	}
	return b.String()
}

// reference is where a fault is known, as a link with a short name if it is an address: IBM/repository#105.
func reference(known string) string {
	path, ok := strings.CutPrefix(known, "https://github.com/")
	if !ok {
		return known
	}
	return "[" + strings.NewReplacer("/issues/", "#", "/pull/", "#").Replace(path) + "](" + known + ")"
}
