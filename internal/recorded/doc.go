// Package recorded reads results of a query that were recorded elsewhere: two files, one of trials on D0 and one of
// trials on D1.
//
// In: two paths and Options. Out: pairs of outcomes in the order of the files, and an Input for each file that
// describes how it was read. A format that is not given is detected. A file that fits several formats, or none, is an
// error with the line and what to do. Errors and Inputs contain no value of a result, only names of columns,
// line numbers and counts.
package recorded

// Format is the format of a file of results.
type Format string

// The formats.
const (
	Auto  Format = "auto"  // detect it
	Lines Format = "lines" // one result per line, in the syntax of outcome.Parser
	CSV   Format = "csv"   // RFC 4180: commas, and a first line with the names of the columns
	JSONL Format = "jsonl" // one JSON object per line, in the syntax of outcome.Parser
)

// Options configures how the files are read. The zero value detects everything.
type Options struct {
	Format Format   // "" = Auto
	Trial  string   // the column with the same value in all rows of a trial; "" = every line is a trial
	Keys   []string // columns that form the group key; none = learned from the results
	// FillGaps counts missing trial numbers in a file as trials that returned no row.
	FillGaps bool
}

// Input describes how one file was read.
type Input struct {
	Format  Format   `json:"format"`
	Columns []string `json:"columns,omitempty"`
	Trial   string   `json:"trial,omitempty"`
	Keys    []string `json:"keys,omitempty"`
	Trials  int      `json:"trials"`
	Rows    int      `json:"rows"`
	Unused  int      `json:"unused"`          // trials without a partner in the other file
	Empty   int      `json:"empty,omitempty"` // trials without a row, or empty lines
	Filled  int      `json:"filled,omitempty"`

	warnings []string
}
