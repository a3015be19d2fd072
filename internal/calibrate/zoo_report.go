package calibrate

import (
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"

	"github.com/dpwatch/dpwatch/analysis"
)

// ZooReport is the result of a calibration of the auditor. Its JSON form is a contract with scripts.
type ZooReport struct {
	Confidence float64 `json:"confidence"` // of one audit
	MaxTrials  int     `json:"max_trials"`
	Rows       []Row   `json:"queries"`
}

// noFaults is the summary of a report without faults.
const noFaults = "False alarms are not more frequent than the confidence allows, and every wrong query is found."

// alarmAlpha bounds the probability that [ZooReport.Faults] reports false alarms of an auditor that keeps its error
// rate.
const alarmAlpha = 1e-6

// Faults returns what is wrong with the auditor: more false alarms of a right query, or of all of them, than its error
// rate allows, and wrong queries that fewer than half of the audits found.
func (r *ZooReport) Faults() (faults []string) {
	rows, k, n := 0, 0, 0
	for _, row := range r.Rows {
		if row.Right {
			rows, k, n = rows+1, k+row.Violations, n+row.Runs
		}
	}
	over := func(k, n int) bool {
		lower, _ := analysis.ClopperPearson(k, n, 2*alarmAlpha/float64(rows+1))
		return lower > 1-r.Confidence
	}
	for _, row := range r.Rows {
		switch {
		case row.Right && over(row.Violations, row.Runs):
			faults = append(faults, fmt.Sprintf("%s (%s): %d of %d audits are false alarms, more than the rate %.3g allows", row.Name, row.trials(), row.Violations, row.Runs, 1-r.Confidence))
		case !row.Right && math.IsNaN(float64(row.Median)):
			faults = append(faults, fmt.Sprintf("%s (%s): only %d of %d audits find it within %d pairs", row.Name, row.trials(), row.Violations, row.Runs, r.MaxTrials))
		}
	}
	if over(k, n) {
		faults = append(faults, fmt.Sprintf("%d of %d audits of right queries are false alarms, more than the rate %.3g allows", k, n, 1-r.Confidence))
	}
	return faults
}

func (r *Row) trials() string {
	if r.Hoisted {
		return "hoisted"
	}
	return "whole"
}

// Write writes the report as two tables.
func (r *ZooReport) Write(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "RIGHT QUERY\tTRIALS\tFALSE ALARMS\t99 % INTERVAL OF THE RATE")
	for _, row := range r.Rows {
		if row.Right {
			fmt.Fprintln(table, strings.Join(row.rightCells(), "\t"))
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(table, "\nWRONG QUERY\tTRIALS\tFOUND\tPAIRS, MEDIAN\tLIMIT\tCAUSE\tNAMED FIRST")
	first, found := 0, 0
	for _, row := range r.Rows {
		if !row.Right {
			fmt.Fprintln(table, strings.Join(row.wrongCells(), "\t"))
			first, found = first+row.CauseFirst, found+row.Violations
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(w, "\nThe right cause is named first in %d of %d findings. LIMIT is what the best auditor needs, who knows both laws. Confidence of an audit: %g.\n", first, found, r.Confidence)
	faults := r.Faults()
	if len(faults) == 0 {
		fmt.Fprintln(w, noFaults)
	}
	for _, fault := range faults {
		fmt.Fprintln(w, "FAULT: "+fault)
	}
	return nil
}

// whole formats a number of pairs, rounded up; "-" for none.
func whole(x analysis.Float) string {
	if math.IsNaN(float64(x)) {
		return "-"
	}
	return fmt.Sprintf("%.0f", math.Ceil(float64(x)))
}
