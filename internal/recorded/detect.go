package recorded

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"

	"github.com/dpwatch/dpwatch/internal/outcome"
)

// sampleBytes is the size of the sample from which the format of a file is detected. The whole file is then checked
// against it.
const sampleBytes = 256 << 10

// refusal returns an error at a line of a file.
func refusal(line int, format string, args ...any) error {
	return fmt.Errorf("%d: %s", line, fmt.Sprintf(format, args...))
}

// Lines that psql prints around a table.
var (
	psqlRule  = regexp.MustCompile(`^-{3,}(\+-{2,})*$`) // on the second line
	psqlCount = regexp.MustCompile(`^\([0-9]+ rows?\)$`)
)

// detect returns the format of a file, from its first lines. wanted is the format in the options.
func detect(sample []byte, wanted Format) (Format, error) {
	if err := readable(sample); err != nil {
		return "", err
	}
	if wanted == Lines || wanted == JSONL {
		return wanted, nil
	}
	lines := bytes.Split(bytes.TrimPrefix(sample, byteOrderMark), []byte("\n"))
	for i, line := range lines {
		line = bytes.TrimSpace(line)
		switch {
		case wanted == CSV:
		case len(line) > 0 && line[0] == '{':
			return Lines, nil
		case len(line) > 0 && line[0] == '[':
			return "", refusal(i+1, `a JSON array: write one result a line, {"columns":[..],"rows":[[..],..]}`)
		case i == 1 && psqlRule.Match(line) || psqlCount.Match(line):
			return "", refusal(i+1, `the table that psql prints for people: run psql --csv, or \copy (query) TO 'file' CSV HEADER`)
		}
	}
	if err := otherDelimiter(lines); err != nil || wanted == CSV {
		return CSV, err
	}
	return detectTable(sample, lines)
}

// readable rejects data that is not text in UTF-8 or ASCII, or has unsupported line ends.
func readable(sample []byte) error {
	switch {
	case bytes.HasPrefix(sample, []byte{0xFF, 0xFE}) || bytes.HasPrefix(sample, []byte{0xFE, 0xFF}):
		return refusal(1, "UTF-16: save the file as UTF-8")
	case bytes.HasPrefix(sample, []byte{0x1F, 0x8B}):
		return refusal(1, "compressed by gzip: decompress the file first, or pass <(gunzip -c FILE)")
	case bytes.IndexByte(sample, 0) >= 0:
		return refusal(1, "a binary file: write results as text, one result a line, or as CSV")
	case bytes.IndexByte(sample, '\n') < 0 && bytes.IndexByte(bytes.TrimRight(sample, "\r"), '\r') >= 0:
		return refusal(1, "lines end with CR alone: convert them to LF or CR LF")
	}
	return nil
}

// otherDelimiter rejects lines that all have the same number of tabs, or of semicolons.
func otherDelimiter(lines [][]byte) error {
	for _, d := range []struct {
		delim string
		name  string
	}{{"\t", "tabs"}, {";", "semicolons"}} {
		first, n, same := 0, 0, true
		for i, line := range lines {
			if len(bytes.TrimSpace(line)) == 0 {
				continue
			}
			count := bytes.Count(line, []byte(d.delim))
			if first == 0 {
				first, n = i+1, count
			}
			same = same && count == n
		}
		if n > 0 && same {
			return refusal(first, "fields are separated by %s: write CSV with commas and a line of column names, as psql --csv does, or give --format lines to read every line as one value", d.name)
		}
	}
	return nil
}

// detectTable reports whether commas give every line of a sample the same number of fields. If not, every line is one
// value.
func detectTable(sample []byte, lines [][]byte) (Format, error) {
	width, ragged, err := widths(sample)
	switch {
	case err == nil && width > 1 && ragged == 0:
		return CSV, nil
	case err == nil && ragged > 0:
		return "", refusal(ragged, "not as many fields as in the first line, if commas separate fields: correct the line, or give --format lines to read every line as one value")
	}
	return Lines, blankSeparated(lines)
}

// widths returns the number of fields of the first record and the line of the first record with another number; 0 if
// there is none, or if so few records have a comma that it is part of their texts.
func widths(sample []byte) (width, ragged int, err error) {
	r := newRecords(bytes.NewReader(sample), true)
	some, all := 0, 0
	for {
		fields, err := r.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			if r.line*2 > bytes.Count(sample, []byte("\n")) { // the sample ends inside a record
				break
			}
			return 0, 0, err
		}
		if fields == nil {
			continue
		}
		all++
		if width == 0 {
			width = len(fields)
		}
		if len(fields) > 1 {
			some++
		}
		if len(fields) != width && ragged == 0 {
			ragged = r.start
		}
	}
	if width == 1 && some*2 < all {
		ragged = 0
	}
	return width, ragged, nil
}

// blankSeparated rejects lines that all hold several numbers.
func blankSeparated(lines [][]byte) error {
	seen := 0
	for _, line := range lines {
		fields := bytes.Fields(line)
		if len(fields) == 0 {
			continue
		}
		if len(fields) == 1 {
			return nil
		}
		for _, f := range fields {
			if _, ok := outcome.ParseNumber(f); !ok {
				return nil
			}
		}
		seen++
	}
	if seen == 0 {
		return nil
	}
	return refusal(1, "several numbers separated by blanks: write CSV with a line of column names, or one JSON object a line")
}
