package calibrate

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/dpwatch/dpwatch/analysis"
)

// Report is the result of a battery. Its JSON form is a contract with scripts.
type Report struct {
	Confidence float64 `json:"confidence"` // of all verdicts together
	Delta      float64 `json:"delta"`
	Cases      []Case  `json:"cases"`
}

// count returns the number of cases with a verdict.
func (r *Report) count(v analysis.Verdict) (n int) {
	for i := range r.Cases {
		if r.Cases[i].Verdict == v {
			n++
		}
	}
	return n
}

// Verdict returns Violation if a case is one, otherwise Inconclusive if all cases of a function are but that of two
// calls, otherwise NoEvidence.
func (r *Report) Verdict() analysis.Verdict {
	if r.count(analysis.Violation) > 0 {
		return analysis.Violation
	}
	audited := map[string]bool{}
	for i := range r.Cases {
		c := &r.Cases[i]
		audited[c.Template] = audited[c.Template] || c.Calls == 1 && c.Verdict == analysis.NoEvidence
	}
	for _, ok := range audited {
		if !ok {
			return analysis.Inconclusive
		}
	}
	return analysis.NoEvidence
}

func (c *Case) name() string {
	text := fmt.Sprintf("%s, %d rows, epsilon %g", c.Function, c.Rows, c.Epsilon)
	if c.Outside {
		text += ", a value outside"
	}
	if c.Calls > 1 {
		text += ", two calls"
	}
	return text
}

// String returns the fit as text.
func (f *Fit) String() string {
	if f == nil {
		return "-"
	}
	return fmt.Sprintf("%s (%s, %.2f times the scale)", strings.ReplaceAll(string(f.Reading), "_", " "), f.Law, f.Scale)
}

// Write writes the report as a table.
func (r *Report) Write(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	template := ""
	for i := range r.Cases {
		c := &r.Cases[i]
		if c.Template != template {
			template = c.Template
			fmt.Fprintf(table, "%s = %s\n", c.Function, template)
			fmt.Fprintln(table, "  EPSILON\tROWS\tVALUES\tVERDICT\tLOWER BOUND\tPAIRS\tNOISE\tPROBABLE CAUSE")
		}
		cause := c.Cause
		if cause == "" {
			cause = "-"
		}
		fmt.Fprintf(table, "  %s\t%s\n", strings.Join(c.cells(), "\t"), cause)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\n%s\n", r.summary())
	return err
}

// summary says what was found.
func (r *Report) summary() string {
	n, open := r.count(analysis.Violation), r.count(analysis.Inconclusive)
	text := fmt.Sprintf("No evidence of a violation in %d audits. That is not a proof of privacy.", len(r.Cases)-open)
	if n > 0 {
		text = fmt.Sprintf("VIOLATION: %d of %d audits found more leakage than the epsilon that the function was called with (confidence %g, all audits together).", n, len(r.Cases), r.Confidence)
	}
	for i := range r.Cases {
		if c := &r.Cases[i]; c.Verdict == analysis.Inconclusive {
			return fmt.Sprintf("%s Inconclusive: %d. The first is %s: %s.", text, open, c.name(), c.Reason)
		}
	}
	return text
}
