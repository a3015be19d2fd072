package show

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// Table aligns rows of cells.
type Table struct{ w *tabwriter.Writer }

// NewTable returns a table that Flush writes to w.
func NewTable(w io.Writer) Table { return Table{tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)} }

// Row adds a row.
func (t Table) Row(cells ...string) {
	for i, c := range cells {
		cells[i] = strings.NewReplacer("\t", " ", "\n", " ", "\v", " ", "\f", " ").Replace(c)
	}
	fmt.Fprintln(t.w, strings.Join(cells, "\t"))
}

// Flush writes the rows.
func (t Table) Flush() { _ = t.w.Flush() } // to a strings.Builder

// Moment formats a time.
func Moment(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// Section writes named values below a title; nothing without values.
func Section(b *strings.Builder, title string, rows [][2]string) {
	if len(rows) == 0 {
		return
	}
	if title != "" {
		fmt.Fprintf(b, "\n%s\n", title)
	}
	table := NewTable(b)
	for _, r := range rows {
		if r[0] == "" {
			table.Row("  " + r[1])
			continue
		}
		table.Row("  "+r[0], r[1])
	}
	table.Flush()
}
