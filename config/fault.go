package config

import (
	"fmt"
	"slices"
	"strings"
)

// Fault is one error in a configuration.
type Fault struct {
	File string
	Line int    // from 1; 0 if there is no line
	Path string // proxy.upstream
	Text string // what is wrong and how to correct it
}

// Error returns "file:line: path: text".
func (f Fault) Error() string {
	var b strings.Builder
	b.WriteString(f.File)
	if f.Line > 0 {
		fmt.Fprintf(&b, ":%d", f.Line)
	}
	b.WriteString(": ")
	if f.Path != "" {
		b.WriteString(f.Path + ": ")
	}
	b.WriteString(f.Text)
	return b.String()
}

// Faults holds all faults of one file, sorted by line.
type Faults []Fault

// Error returns one line per fault.
func (fs Faults) Error() string {
	lines := make([]string, len(fs))
	for i, f := range fs {
		lines[i] = f.Error()
	}
	return strings.Join(lines, "\n")
}

func (fs Faults) sorted() Faults {
	slices.SortStableFunc(fs, func(a, b Fault) int { return a.Line - b.Line })
	return fs
}
