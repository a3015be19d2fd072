package pages

import (
	"errors"
	"fmt"
	"html/template"

	"github.com/dpwatch/dpwatch/internal/app/setup"
)

// sections is the content of a page that consists of tables.
type sections struct {
	Menu     *menu
	Done     string // what an action did
	Sections []section
}

// menu is a choice among links.
type menu struct {
	Name  string
	Links []menuLink
}

type menuLink struct {
	Path, Name string
	Current    bool
}

// section is a titled part of a page.
type section struct {
	Title   string
	Notes   []string
	Buttons []button // of operators
	Header  []string
	Rows    [][]cell
	Empty   string // what to do if there are no rows
	Text    string // as it is
}

// button sends a form.
type button struct {
	Path, Text string
	Fields     []field
}

// field is a hidden field of a form or, with a label, one to fill in.
type field struct{ Name, Value, Label string }

// cell is a cell of a table.
type cell struct {
	Text  string
	Code  bool   // SQL
	Path  string // "" = no link
	Meter template.HTML
}

func text(v any) cell { return cell{Text: fmt.Sprint(v)} }

// query is the cell of a query.
func query(id, summary string) cell { return cell{Text: summary, Code: true, Path: "/queries/" + id} }

// faultSection shows that something cannot be read, beside what can.
func faultSection(title string, err error) section {
	if errors.Is(err, setup.ErrNoLedger) {
		return section{Title: title, Notes: []string{"There is no ledger: set ledger.dsn or neighbours.target, and restart dpwatch."}}
	}
	return section{Title: title, Notes: []string{sentence(err)}}
}
