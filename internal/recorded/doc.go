// Package recorded reads results of a query that were recorded elsewhere: two files, one of trials on D0 and one of trials
// on D1.
//
// In: two paths and Options. Out: pairs of outcomes in the order of the files, and an Input for each file that says how it
// was read. A format that is not given is detected; what fits several formats, or none, is an error that names the line
// and the option to use. Errors and Inputs hold no value of a result, only names of columns, numbers of lines and counts.
package recorded

// Format is how a file holds results.
type Format string

// The formats.
const (
	Auto  Format = "auto"  // detect it
	Lines Format = "lines" // one result a line, as outcome.ParseLine reads it
	CSV   Format = "csv"   // RFC 4180, with commas or semicolons
	TSV   Format = "tsv"   // the same with tabs; \N is NULL too
	JSONL Format = "jsonl" // one JSON object a line, as outcome.ParseLine reads it
)

// Header says whether the first line of a CSV or TSV file holds the names of the columns.
type Header string

// The values of Header.
const (
	HeaderAuto Header = "auto" // detect it
	HeaderYes  Header = "yes"
	HeaderNo   Header = "no"
)

// Options says how the files are to be read. The zero value detects everything.
type Options struct {
	Format Format // "" = Auto
	Header Header // "" = HeaderAuto
	// Trial is the column whose value is the same in all rows of a trial; "" = every line is a trial of its own. Columns
	// are given by their name, or by their position from 1 where there is no header.
	Trial string
	Keys  []string // the columns that form the group key; none = they are learned from the results
	// FillGaps reads trial numbers that a file lacks as trials that returned no row.
	FillGaps bool
}

// Input says how one file was read.
type Input struct {
	Format    Format   `json:"format"`
	Delimiter string   `json:"delimiter,omitempty"`
	Header    bool     `json:"header"`
	Columns   []string `json:"columns,omitempty"` // by name, or by position where there is no header
	Trial     string   `json:"trial,omitempty"`
	Keys      []string `json:"keys,omitempty"`
	Trials    int      `json:"trials"`
	Rows      int      `json:"rows"`
	Unused    int      `json:"unused"`          // trials without a partner in the other file
	Empty     int      `json:"empty,omitempty"` // trials without a row, or empty lines
	Filled    int      `json:"filled,omitempty"`

	warnings []string
}
