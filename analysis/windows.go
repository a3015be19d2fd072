package analysis

import (
	"fmt"

	"github.com/dpwatch/dpwatch/internal/withheld"
)

// Window is a limit that answers met: bytes behind it that no score reads, or questions that are asked in turn.
type Window struct {
	Kind WindowKind `json:"kind"`
	// What says what is behind the limit; it holds no value of a row.
	What   string `json:"what"`
	Column string `json:"column,omitempty"` // the name that the statement gives it, or its number; empty for the whole answer
	// Looked is how much of it is looked at, at a time or at all, and Of how much there is.
	Looked int `json:"looked"`
	Of     int `json:"of"`
}

// WindowKind says what a window means for the verdict.
type WindowKind string

// The kinds of windows.
const (
	ReadingWindow WindowKind = "reading" // bytes that no score reads: there is no verdict of no evidence
	PowerWindow   WindowKind = "power"   // everything is looked at, but more pairs of trials are needed
)

// windows returns the limits that the answers met, those of reading first.
func (o *observations) windows() []Window {
	all := []Window{}
	if n := o.cut[0] + o.cut[1]; n > 0 {
		all = append(all, Window{Kind: ReadingWindow, What: "results with more rows or bytes than are read (shadow.max_rows, shadow.max_result): their size and a hash of their bytes were compared", Looked: 2*o.pairs - n, Of: 2 * o.pairs})
	}
	e := o.scores.Exact
	for _, t := range e.Unread() {
		w := Window{Kind: ReadingWindow, What: "texts that came for the first time, and of which not only the numbers were new: their single characters, length and words were compared", Looked: t.All - t.New, Of: t.All}
		w.Column = o.columnName(t.Column)
		all = append(all, w)
	}
	if read, half := e.Longest(); half > read {
		all = append(all, Window{Kind: ReadingWindow, What: "bytes of the longest text: those in the middle were compared as a whole", Looked: 2 * read, Of: 2 * half})
	}
	for _, t := range append(e.Turns(), o.scores.Turns()...) {
		all = append(all, Window{Kind: PowerWindow, What: t.What + ", in turn", Looked: t.Looked, Of: t.Of})
	}
	return all
}

// columnName names a column; it is empty for what the server says beside the columns.
func (o *observations) columnName(column int) string {
	if r := o.scores.Reader; r != nil && column >= 0 && column < r.Width {
		return r.ColumnName(column)
	}
	return ""
}

// unread says in words what of the answers was not read; empty if everything was.
func unread(windows []Window) string {
	for _, w := range windows {
		if w.Kind == ReadingWindow {
			where := ""
			if w.Column != "" {
				where = " in column " + w.Column
			}
			return fmt.Sprintf("the answers were not read whole%s: %d of %d %s", where, w.Of-w.Looked, w.Of, w.What)
		}
	}
	return ""
}

// unreadWarnings are the limits of reading in words.
func unreadWarnings(windows []Window) (all []withheld.Text) {
	for i := range windows {
		if text := unread(windows[i : i+1]); text != "" {
			all = append(all, withheld.Public(text))
		}
	}
	return all
}
