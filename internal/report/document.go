package report

// Document is a report. HTML and PDF show the same.
type Document struct {
	Title    string
	Lead     []string // paragraphs below the title
	Sections []Section
}

// Section is a part of a document: its text, its table, its plots, then its subsections.
type Section struct {
	Title    string
	Lines    []string // paragraphs
	Table    *Table
	Plots    []Plot
	Sections []Section
}

// Table is a table. Rows have as many cells as Header, or two cells if Header is nil.
type Table struct {
	Header []string
	Rows   [][]string
}

// Plot is a picture with a sentence that says what it shows.
type Plot struct {
	Title    string
	Caption  string
	SVG, PNG []byte
}
