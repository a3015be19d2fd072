package recorded

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"slices"
	"strconv"
)

// sampleRecords is the number of records used to find a header.
const sampleRecords = 1000

// newLayout finds the header of a delimited file and the columns in the options. The layout of an empty file is nil.
func newLayout(sample []byte, delim byte, o Options) (*layout, error) {
	first, rest, line, broken := firstRecords(sample, delim)
	if first == nil {
		return nil, broken
	}
	if other := bytes.IndexAny(first[0], "\t;,"); len(first) == 1 && other >= 0 && o.Format != Auto && o.Format != "" {
		return nil, refusal(line, "one column, though the line holds %q: leave --format out, or give the format of the file", first[0][other])
	}
	l := &layout{delim: delim, trial: -1}
	var err error
	if l.header, err = isHeader(first, rest, line, o); err != nil {
		return nil, cmp.Or(broken, err)
	}
	for i, field := range first {
		name := strconv.Itoa(i + 1)
		if l.header && len(field) > 0 {
			name = string(field)
		}
		if slices.Contains(l.names, name) {
			return nil, refusal(line, "two columns have the name %s: rename one", name)
		}
		l.names = append(l.names, name)
	}
	if o.Trial != "" {
		if l.trial, err = l.column("--trial", o.Trial, line); err != nil {
			return nil, err
		}
		if len(l.names) == 1 {
			return nil, refusal(line, "the only column is --trial %s: a trial needs a result too", o.Trial)
		}
	}
	for _, name := range o.Keys {
		i, err := l.column("--key", name, line)
		switch {
		case err != nil:
			return nil, err
		case i == l.trial:
			return nil, refusal(line, "column %s is --trial and cannot be --key too", name)
		case slices.Contains(l.keys, i):
			return nil, refusal(line, "--key %s is given twice", name)
		}
		l.keys = append(l.keys, i)
	}
	return l, nil
}

// column finds a column named in an option.
func (l *layout) column(option, name string, line int) (int, error) {
	if i := slices.Index(l.names, name); i >= 0 {
		return i, nil
	}
	if !l.header {
		return 0, refusal(line, "%s %s: there is no header, so give the column's position from 1 to %d", option, name, len(l.names))
	}
	return 0, refusal(line, "%s %s: no column has this name", option, name)
}

// firstRecords returns copies of the first record and of the next ones of a sample, as far as they can be read.
func firstRecords(sample []byte, delim byte) (first [][]byte, rest [][][]byte, line int, err error) {
	r := newRecords(bytes.NewReader(sample), delim)
	for len(rest) < sampleRecords {
		fields, err := r.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return first, rest, line, err
		}
		if fields == nil {
			continue
		}
		kept := make([][]byte, len(fields))
		for i, f := range fields {
			kept[i] = bytes.Clone(f)
		}
		if first == nil {
			first, line = kept, r.start
			continue
		}
		rest = append(rest, kept)
	}
	return first, rest, line, nil
}

// isHeader reports whether the first record is a header: it holds no number, and some column with a text there holds
// numbers below. If all values are texts, it is recognised only by a column in the options, or by a repetition of the
// first record.
func isHeader(first [][]byte, rest [][][]byte, line int, o Options) (bool, error) {
	switch o.Header {
	case HeaderYes:
		return true, nil
	case HeaderNo:
		return false, nil
	}
	for _, name := range append([]string{o.Trial}, o.Keys...) {
		_, err := strconv.Atoi(name)
		if name != "" && err != nil && slices.ContainsFunc(first, func(f []byte) bool { return string(f) == name }) {
			return true, nil
		}
	}
	for i, field := range first {
		if k := kindOf(field); k != text && (k != null || i > 0) { // pandas leaves the name of its index empty
			return false, nil
		}
	}
	recurs := false
	for i, field := range first {
		numbers, others := 0, 0
		for _, record := range rest {
			if i >= len(record) {
				continue
			}
			switch kindOf(record[i]) {
			case whole, decimal, comma:
				numbers++
			case text:
				others++
				recurs = recurs || bytes.Equal(record[i], field)
			}
		}
		if field != nil && numbers > others {
			return true, nil
		}
	}
	if recurs {
		return false, nil
	}
	return false, refusal(line, "cannot tell whether this line is a header: give --header yes or --header no")
}
