package report

import "github.com/dpwatch/dpwatch/internal/chart"

// Document is a report.
type Document struct {
	Title    string
	Lead     []string // paragraphs below the title
	Sections []Section
}

// Section is a part of a document: its title, which may be missing, its text, its table, its charts, then its
// subsections.
type Section struct {
	Title    string
	Lines    []string // paragraphs
	Table    *Table
	Charts   []chart.Figure
	Sections []Section
	// Signatures are what stands below lines that people sign on.
	Signatures []string
	Page       bool // begins a page when it is printed
	Whole      bool // is on one page if it fits, with its charts beside the table
}

// Table is a table. Rows have as many cells as Header, or two cells if Header is nil.
type Table struct {
	Header []string
	Rows   [][]string
	Lines  bool // each row is one line: only cells of the last column may be cut off
}
