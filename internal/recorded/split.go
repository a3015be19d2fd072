package recorded

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

const (
	// maxLineBytes bounds one line and one record.
	maxLineBytes = 64 << 20
	// maxRecordLines bounds the lines of a record with line breaks inside quotes.
	maxRecordLines = 1000
)

var errOpenQuote = errors.New("a quotation mark is not closed")

// records reads the records of a file. A record is a line; that of a CSV file has fields, and may span lines inside
// quotes.
type records struct {
	scan   *bufio.Scanner
	csv    bool // false = a record is one field, the unchanged line
	line   int  // the last line read
	start  int  // first line of the last record
	fields [][]byte
	joined []byte
}

func newRecords(r io.Reader, csv bool) *records {
	scan := bufio.NewScanner(r)
	scan.Buffer(make([]byte, 0, 64<<10), maxLineBytes)
	return &records{scan: scan, csv: csv}
}

// next returns the fields of the next record, which are valid until the next call; none for an empty line. A nil field
// is NULL: nothing between two delimiters. The error is io.EOF after the last record; other errors name the line.
func (r *records) next() ([][]byte, error) {
	line, err := r.read()
	if err != nil {
		return nil, err
	}
	r.start = r.line
	if !r.csv {
		r.fields = append(r.fields[:0], line)
		return r.fields, nil
	}
	line = bytes.TrimSuffix(line, []byte("\r"))
	if len(line) == 0 {
		return nil, nil
	}
	r.fields, err = split(line, r.fields[:0])
	for errors.Is(err, errOpenQuote) && r.line-r.start < maxRecordLines {
		if r.line == r.start {
			r.joined = append(r.joined[:0], line...)
		}
		more, readErr := r.read()
		if readErr != nil || len(r.joined)+len(more) > maxLineBytes {
			break
		}
		r.joined = append(append(r.joined, '\n'), bytes.TrimSuffix(more, []byte("\r"))...)
		r.fields, err = split(r.joined, r.fields[:0])
	}
	if err != nil {
		return nil, fmt.Errorf("%d: %w", r.start, err)
	}
	return r.fields, nil
}

// byteOrderMark is at the start of text files of some programs.
var byteOrderMark = []byte("\uFEFF")

func (r *records) read() ([]byte, error) {
	if !r.scan.Scan() {
		switch err := r.scan.Err(); {
		case errors.Is(err, bufio.ErrTooLong):
			return nil, fmt.Errorf("%d: the line is longer than %d MiB", r.line+1, maxLineBytes>>20)
		case err != nil:
			return nil, fmt.Errorf("%d: %w", r.line+1, err)
		}
		return nil, io.EOF
	}
	r.line++
	line := r.scan.Bytes()
	if r.line == 1 {
		line = bytes.TrimPrefix(line, byteOrderMark)
	}
	return line, nil
}

// split appends the fields of one record. Quotes follow RFC 4180.
func split(line []byte, out [][]byte) ([][]byte, error) {
	for {
		line = skipBlanks(line)
		if len(line) > 0 && line[0] == '"' {
			field, rest, err := unquote(line)
			if err != nil {
				return out, err
			}
			out = append(out, field)
			rest = skipBlanks(rest)
			switch {
			case len(rest) == 0:
				return out, nil
			case rest[0] != ',':
				return out, errors.New("text follows a closing quotation mark: put a comma between two fields, and double a quotation mark inside a field")
			}
			line = rest[1:]
			continue
		}
		end := bytes.IndexByte(line, ',')
		last := end < 0
		if last {
			end = len(line)
		}
		field := bytes.TrimRight(line[:end], " ")
		if bytes.IndexByte(field, '"') >= 0 {
			return out, errors.New("a quotation mark inside a field that does not begin with one: enclose the field in quotation marks and double those inside")
		}
		if len(field) == 0 {
			field = nil
		}
		out = append(out, field)
		if last {
			return out, nil
		}
		line = line[end+1:]
	}
}

// skipBlanks skips blanks before a field, which do not belong to it.
func skipBlanks(b []byte) []byte {
	for len(b) > 0 && b[0] == ' ' {
		b = b[1:]
	}
	return b
}

// unquote parses a field that begins with a quote, and returns the remaining text. The field is never nil.
func unquote(b []byte) (field, rest []byte, err error) {
	b = b[1:]
	end := bytes.IndexByte(b, '"')
	if end >= 0 && (end+1 == len(b) || b[end+1] != '"') { // no doubled quote
		return b[:end:end], b[end+1:], nil
	}
	field = []byte{}
	for end >= 0 {
		field = append(field, b[:end]...)
		if end+1 == len(b) || b[end+1] != '"' {
			return field, b[end+1:], nil
		}
		field = append(field, '"')
		b = b[end+2:]
		end = bytes.IndexByte(b, '"')
	}
	return nil, nil, errOpenQuote
}
