package config

import (
	"fmt"
	"slices"
	"strings"
)

// Error is one error in a configuration.
type Error struct {
	File string
	Line int    // from 1; 0 if there is no line
	Path string // the key, proxy.upstream for example; "" for the whole file
	Text string // what is wrong and how to correct it
}

// Error returns "file:line: path: text".
func (e Error) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	if e.Line > 0 {
		fmt.Fprintf(&b, ":%d", e.Line)
	}
	b.WriteString(": ")
	if e.Path != "" {
		b.WriteString(e.Path + ": ")
	}
	b.WriteString(e.Text)
	return b.String()
}

// Errors holds all errors of one file, sorted by line.
type Errors []Error

// Error returns one line for each error.
func (es Errors) Error() string {
	lines := make([]string, len(es))
	for i, e := range es {
		lines[i] = e.Error()
	}
	return strings.Join(lines, "\n")
}

func (es Errors) sorted() Errors {
	slices.SortStableFunc(es, func(a, b Error) int { return a.Line - b.Line })
	return es
}
