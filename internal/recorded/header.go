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

// newLayout reads the header of a CSV file and finds the columns in the options. The layout of an empty file is nil.
func newLayout(sample []byte, o Options) (*layout, error) {
	first, rest, line, broken := firstRecords(sample)
	if first == nil {
		return nil, broken
	}
	if err := checkHeader(first, rest, line, o); err != nil {
		return nil, cmp.Or(broken, err)
	}
	l := &layout{trial: -1}
	for i, field := range first {
		name := strconv.Itoa(i + 1)
		if len(field) > 0 {
			name = string(field)
		}
		if slices.Contains(l.names, name) {
			return nil, refusal(line, "two columns have the name %s: rename one", name)
		}
		l.names = append(l.names, name)
	}
	var err error
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
	return 0, refusal(line, "%s %s: no column has this name", option, name)
}

// firstRecords returns copies of the first record and of the next ones of a sample, as far as they can be read.
func firstRecords(sample []byte) (first [][]byte, rest [][][]byte, line int, err error) {
	r := newRecords(bytes.NewReader(sample), true)
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

// checkHeader rejects a first record that is no header. A header holds no number, and some column with a text there
// holds numbers below. If all values are texts, the options must say that the file is CSV, or name one of the columns.
func checkHeader(first [][]byte, rest [][][]byte, line int, o Options) error {
	for i, field := range first {
		switch k := kindOf(field); {
		case k == null && i > 0: // pandas leaves the name of its index empty
			return refusal(line, "column %d has no name: the first line of a CSV file holds the names of its columns", i+1)
		case k != text && k != null:
			return refusal(line, "a number in place of a column name: put a line with the names of the columns first")
		}
	}
	for _, name := range append([]string{o.Trial}, o.Keys...) {
		if name != "" && slices.ContainsFunc(first, func(f []byte) bool { return string(f) == name }) {
			return nil
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
			return nil
		}
	}
	switch {
	case recurs:
		return refusal(line, "a text of this line comes again in its column: put a line with the names of the columns first; rename a column whose name is also a value")
	case o.Format == CSV:
		return nil
	}
	return refusal(line, "cannot tell whether this line holds column names: give --format csv if it does, and put such a line first if not")
}
