package recorded

import (
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// column holds the statistics of one column.
type column struct {
	kinds [text + 1]int // fields by kind
	comma int           // line of the first number with a comma
	count counter
	cycle cycle
}

// survey reads a CSV file once, before any result of it is used: it checks that every record fits, counts the
// trials, and finds columns that show that the options do not match the file.
type survey struct {
	layout  layout
	columns []column
	records int
	trials  int
	blank   int // empty lines
	lines   int
	ids     trialNumbers
}

// layout describes how the records of a CSV file become results.
type layout struct {
	names []string // from the header
	trial int      // index of the trial column; -1 = every record is a trial
	keys  []int    // indices of key columns
}

// skipHeader reads the header.
func (l *layout) skipHeader(r *records) error {
	for {
		if fields, err := r.next(); err != nil || fields != nil {
			return err
		}
	}
}

// take reads every record after the header.
func (s *survey) take(r *records) error {
	seed := maphash.MakeSeed()
	seen := map[string]bool{}
	current := ""
	if err := s.layout.skipHeader(r); err != nil {
		return err
	}
	for {
		fields, err := r.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if fields == nil {
			s.blank++
			if s.layout.trial < 0 {
				s.trials++
			}
			continue
		}
		if err := s.fits(r, fields); err != nil {
			return err
		}
		s.records++
		for i, field := range fields {
			s.columns[i].add(field, r.start, s.records-1, seed)
		}
		if s.layout.trial < 0 {
			s.trials++
			continue
		}
		id := fields[s.layout.trial]
		if s.trials > 0 && string(id) == current {
			continue
		}
		if len(id) == 0 {
			return fmt.Errorf("%d: column %s, the trial, is empty", r.start, s.name(s.layout.trial))
		}
		if current = string(id); seen[current] {
			return fmt.Errorf("%d: this trial has rows further up: sort the file by column %s", r.start, s.name(s.layout.trial))
		}
		seen[current] = true
		s.trials++
		s.ids.add(current, r.start)
	}
	s.lines = r.line
	return nil
}

// fits checks the number of fields, and that the header is not repeated.
func (s *survey) fits(r *records, fields [][]byte) error {
	if len(fields) != len(s.columns) {
		return fmt.Errorf("%d: %d fields, and line 1 has %d: correct the line, or give --format lines to read every line as one value", r.start, len(fields), len(s.columns))
	}
	for i, field := range fields {
		if string(field) != s.layout.names[i] {
			return nil
		}
	}
	return fmt.Errorf("%d: the header again: remove the line", r.start)
}

func (s *survey) name(i int) string { return s.layout.names[i] }

// check evaluates the statistics of the columns.
func (s *survey) check() error {
	for i := range s.columns {
		c := &s.columns[i]
		if i == s.layout.trial || slices.Contains(s.layout.keys, i) {
			continue
		}
		switch name := s.name(i); {
		case c.kinds[comma] > 0:
			return fmt.Errorf("%d: column %s holds a number with a comma: write numbers with a decimal point and without thousands separators", c.comma, name)
		case s.layout.trial < 0 && strings.EqualFold(name, "trial"):
			return fmt.Errorf("1: column %s: give --trial %s if it numbers the trials; rename it if it is a result", name, name)
		case s.layout.trial < 0 && c.count.counts(s.records):
			return fmt.Errorf("1: column %s counts upwards line by line: give --trial %s if it numbers the trials, or remove the column", name, name)
		case s.layout.trial >= 0 && c.count.numbersLines(s.records):
			return fmt.Errorf("1: column %s numbers the lines and is no result: remove the column", name)
		case s.layout.trial < 0 && c.kinds[decimal] == 0 && c.cycle.repeats():
			return fmt.Errorf("1: column %s repeats the same %d values in the same order: if each trial has %d rows, add a column with the number of the trial and name it with --trial, or write one JSON object a line", name, c.cycle.period, c.cycle.period)
		}
	}
	return nil
}

// warnings returns unusual but valid properties.
func (s *survey) warnings() (all []string) {
	for i := range s.columns {
		c := &s.columns[i]
		numbers := c.kinds[whole] + c.kinds[decimal]
		if texts := c.kinds[text]; numbers > 0 && texts > 0 && i != s.layout.trial && !slices.Contains(s.layout.keys, i) {
			all = append(all, fmt.Sprintf("column %s holds %d numbers and %d texts: each text is an outcome of its own; write NULL as an empty field", s.name(i), numbers, texts))
		}
	}
	return all
}

func (c *column) add(field []byte, line, record int, seed maphash.Seed) {
	k := kindOf(field)
	c.kinds[k]++
	if k == comma && c.comma == 0 {
		c.comma = line
	}
	c.count.add(field, k)
	if !c.cycle.broken {
		c.cycle.add(maphash.Bytes(seed, field), record)
	}
}

// counter detects whether the whole numbers of a column count upwards.
type counter struct {
	last   int64
	steps  int
	n      int
	broken bool
}

// minCounted is the number of records from which a column that counts upwards is treated as trial or line numbers.
const minCounted = 10

func (c *counter) add(field []byte, k kind) {
	if c.broken {
		return
	}
	v, err := strconv.ParseInt(string(field), 10, 64)
	if k != whole || err != nil || c.n > 0 && v != c.last && (c.last == math.MaxInt64 || v != c.last+1) {
		c.broken = true
		return
	}
	if c.n > 0 && v != c.last {
		c.steps++
	}
	c.last = v
	c.n++
}

// counts reports whether every value is the previous one or the next number.
func (c *counter) counts(records int) bool {
	return !c.broken && records >= minCounted && c.steps >= 3
}

// numbersLines reports whether every value is the next number.
func (c *counter) numbersLines(records int) bool {
	return c.counts(records) && c.steps == records-1
}

// cycle detects whether the values of a column repeat in the same order.
type cycle struct {
	hashes []uint64 // of the first period
	period int      // 0 = not known yet
	n      int
	broken bool
}

// maxPeriod bounds the detected periods.
const maxPeriod = 10_000

func (c *cycle) add(h uint64, record int) {
	c.n = record + 1
	switch {
	case c.period == 0 && record > 0 && h == c.hashes[0]:
		c.period = record
	case c.period == 0 && record < maxPeriod:
		c.hashes = append(c.hashes, h)
	case c.period < 2 || h != c.hashes[record%c.period]:
		c.broken, c.hashes = true, nil
	}
}

// repeats reports whether at least five periods of two or more values, and 40 records, repeat without exception.
// Independent results do so with a probability below 1e-6: the most likely case is one value among 39 equal ones, at
// rate 1/8, that occurs 5 times at equal distances, (1/8)^5 (7/8)^35 = 3e-7.
func (c *cycle) repeats() bool {
	return !c.broken && c.period >= 2 && c.n >= 5*c.period && c.n >= 40
}

// trialNumbers detects whether the trials of a file are numbered, and whether numbers are missing.
type trialNumbers struct {
	broken          bool // some are not whole numbers
	descends        int  // the first line with a number below the previous one
	first           int64
	last, low, high int64
	n               int
}

func (t *trialNumbers) add(id string, line int) {
	v, err := strconv.ParseInt(id, 10, 64)
	if err != nil || t.broken || v > math.MaxInt64/4 || v < math.MinInt64/4 {
		t.broken = true
		return
	}
	if t.n == 0 {
		t.first, t.low, t.high = v, v, v
	} else if v < t.last && t.descends == 0 {
		t.descends = line
	}
	t.low, t.high, t.last = min(t.low, v), max(t.high, v), v
	t.n++
}

// missing returns how many numbers between the lowest and the highest have no trial.
func (t *trialNumbers) missing() int64 {
	if t.broken || t.n == 0 {
		return 0
	}
	return t.high - t.low + 1 - int64(t.n)
}
