package report

import "github.com/dpwatch/dpwatch/internal/chart"

// Document is a report.
type Document struct {
	Title    string
	Lead     []string // paragraphs below the title
	Sections []Section
}

// Section is a part of a document: its text, its table, its charts, then its subsections.
type Section struct {
	Title    string
	Lines    []string // paragraphs
	Table    *Table
	Charts   []chart.Figure
	Sections []Section
}

// Table is a table. Rows have as many cells as Header, or two cells if Header is nil.
type Table struct {
	Header []string
	Rows   [][]string
}
