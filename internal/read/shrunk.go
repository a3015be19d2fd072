package read

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/app/show"
)

// ShrinkState is what became of the search for smaller copies.
type ShrinkState string

// The states of a search for smaller copies.
const (
	Shrunken      ShrinkState = "confirmed"     // an audit of the smaller copies found the violation, with a confirmation
	NotConfirmed  ShrinkState = "not_confirmed" // first trials show it on smaller copies, and an audit of these did not
	NotSmaller    ShrinkState = "not_smaller"   // no smaller copies show it
	NotShownAgain ShrinkState = "not_shown"     // new copies of all rows do not show it
	ShrinkStopped ShrinkState = "interrupted"   // the search was interrupted, or failed: first trials show it on the copies so far
	NoViolation   ShrinkState = "no_violation"  // the audit found none
)

// Shrunk are copies of D0 and D1 with fewer rows on which a violation shows.
type Shrunk struct {
	State    ShrinkState `json:"state"`
	Reason   string      `json:"reason,omitempty"` // of NotShownAgain; it holds no value of a row
	Attempts int         `json:"attempts"`         // audits of smaller copies
	MaxPairs int         `json:"max_pairs"`        // of trials, in each of them
	Pairs    int         `json:"pairs"`            // of trials, in all of them
	// Schemas of the smallest copies, D0 and D1; they have been dropped.
	Schemas []string      `json:"schemas"`
	Tables  []ShrunkTable `json:"tables"`
	// Lower is the certified bound of the audit of the smallest copies; nil = there is none.
	Lower   *analysis.Float `json:"epsilon_lower"`
	Claimed analysis.Float  `json:"-"` // epsilon
	// Script makes the smallest copies under the names of D0 and D1, with the values of the rows; nil if values are
	// withheld, or there are too many rows.
	Script []string `json:"script,omitempty"`
	// Withheld reports that the values of rows are not shown.
	Withheld bool `json:"withheld"`
}

// ShrunkTable has the numbers of rows of a table on D0 and on D1.
type ShrunkTable struct {
	Table  string   `json:"table"` // its name at the source
	Before [2]int64 `json:"before"`
	After  [2]int64 `json:"after"`
}

// MaxShownRows is the greatest number of rows of D0 of which a Script is made.
const MaxShownRows = 50

// rows returns the numbers of rows of all tables of D0, before and after.
func (s *Shrunk) rows() (before, after int64) {
	for _, t := range s.Tables {
		before, after = before+t.Before[0], after+t.After[0]
	}
	return before, after
}

// sentence says what became of the search.
func (s *Shrunk) sentence() string {
	before, after := s.rows()
	size := fmt.Sprintf("%d of %d rows of D0", after, before)
	switch s.State {
	case Shrunken:
		text := "the violation shows on " + size + ", confirmed by an audit of these copies"
		if s.Lower != nil {
			text += fmt.Sprintf(" (epsilon lower bound %s)", analysis.LowerText(*s.Lower, s.Claimed))
		}
		return text
	case NotConfirmed:
		return "not confirmed: an audit of the smaller copies, which first trials suspected, found no violation"
	case NotShownAgain:
		return fmt.Sprintf("none: %d pairs of trials on new copies with all rows did not show the violation.", s.MaxPairs) + because(s.Reason)
	case ShrinkStopped:
		if len(s.Tables) == 0 {
			return "none: the search was interrupted before there were any"
		}
		return "the search was interrupted; first trials show the violation on " + size
	case NotSmaller:
		return "none: without any part of the rows that was taken away, the violation did not show"
	}
	return "none: there is no violation, and nothing to shrink"
}

// write lists the tables and the statements.
func (s *Shrunk) write(w io.Writer) error {
	if len(s.Tables) == 0 {
		return nil
	}
	fmt.Fprintf(w, "\nSmaller copies after %d attempts, each with at most %d pairs of trials (%d in all); %s have been dropped:\n", s.Attempts, s.MaxPairs, s.Pairs, strings.Join(s.Schemas, " (D0) and "))
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "  table\tD0 before\tD1 before\tD0\tD1")
	for _, t := range s.Tables {
		fmt.Fprintf(table, "  %s\t%d\t%d\t%d\t%d\n", show.Printable(t.Table), t.Before[0], t.Before[1], t.After[0], t.After[1])
	}
	if err := table.Flush(); err != nil {
		return err
	}
	switch _, after := s.rows(); {
	case len(s.Script) > 0:
		fmt.Fprintf(w, "\n%s;\n", show.Printable(strings.Join(s.Script, ";\n")))
	case s.Withheld:
		fmt.Fprintln(w, "The rows are withheld.")
	case after > MaxShownRows:
		fmt.Fprintf(w, "The rows are not shown: there are more than %d.\n", MaxShownRows)
	}
	return nil
}
