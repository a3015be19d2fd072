package show

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// textTable aligns rows of cells.
type textTable struct{ w *tabwriter.Writer }

func NewTable(w io.Writer) textTable { return textTable{tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)} }

func (t textTable) Row(cells ...string) {
	for i, c := range cells {
		cells[i] = strings.NewReplacer("\t", " ", "\n", " ", "\v", " ", "\f", " ").Replace(c)
	}
	fmt.Fprintln(t.w, strings.Join(cells, "\t"))
}

func (t textTable) Flush() { _ = t.w.Flush() } // to a strings.Builder

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
