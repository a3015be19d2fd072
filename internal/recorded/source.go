package recorded

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/dpwatch/dpwatch/internal/outcome"
)

// source is one file.
type source struct {
	path   string
	file   *os.File
	sample []byte
	format Format
	table  *survey // of CSV
	lines  lineSurvey

	records *records
	parser  outcome.Parser
	rows    *tableReader // of CSV
	read    int          // results returned
}

// lineSurvey counts the contents of a file of lines.
type lineSurvey struct {
	total, numbers, words, objects, empty int
	first                                 string // first line, if it is a word
}

// open opens a file. Input that cannot be read twice (a pipe) is first copied to a temporary file.
func open(path string) (*source, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read results: %w", err)
	}
	s := &source{path: path, file: f}
	if err := s.prepare(); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *source) close() { _ = s.file.Close() }

func (s *source) prepare() error {
	info, err := s.file.Stat()
	if err != nil {
		return fmt.Errorf("read results: %w", err)
	}
	if info.IsDir() {
		return fmt.Errorf("read results: %s is a directory; give a file with one result a line", s.path)
	}
	if !info.Mode().IsRegular() {
		if err := s.spool(); err != nil {
			return err
		}
	}
	s.sample = make([]byte, sampleBytes)
	n, err := s.file.ReadAt(s.sample, 0)
	s.sample = s.sample[:n]
	if err == nil { // the last line may be incomplete
		if end := bytes.LastIndexByte(s.sample, '\n'); end >= 0 {
			s.sample = s.sample[:end+1]
		}
	} else if !errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: %w", s.path, err)
	}
	return nil
}

func (s *source) spool() error {
	spool, err := os.CreateTemp("", "dpwatch-results-*")
	if err != nil {
		return fmt.Errorf("read results: %w", err)
	}
	_ = os.Remove(spool.Name()) // the file exists while it is open
	_, err = io.Copy(spool, s.file)
	_ = s.file.Close()
	s.file = spool
	if err != nil {
		return fmt.Errorf("%s: %w", s.path, err)
	}
	return nil
}

// rewind starts reading the file from its beginning.
func (s *source) rewind() (*records, error) {
	if _, err := s.file.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	return newRecords(s.file, s.format == CSV), nil
}

// at adds the file to an error that begins with a line number.
func (s *source) at(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s:%w", s.path, err)
}

// survey finds the format and reads the whole file once.
func (s *source) survey(o Options) error {
	var err error
	if s.format, err = detect(s.sample, o.Format); err != nil {
		return s.at(err)
	}
	if s.format == Lines || s.format == JSONL {
		if len(s.sample) > 0 && (o.Trial != "" || len(o.Keys) > 0 || o.FillGaps) {
			return fmt.Errorf("%s: --trial, --key and --fill-gaps are for CSV, and this file has one result a line: leave them out, or give --format csv", s.path)
		}
		return s.at(s.surveyLines())
	}
	return s.at(s.surveyTable(o))
}

func (s *source) surveyTable(o Options) error {
	l, err := newLayout(s.sample, o)
	if err != nil || l == nil {
		return err
	}
	s.table = &survey{layout: *l, columns: make([]column, len(l.names))}
	r, err := s.rewind()
	if err != nil {
		return err
	}
	if err := s.table.take(r); err != nil {
		return err
	}
	return s.table.check()
}

func (s *source) surveyLines() error {
	r, err := s.rewind()
	if err != nil {
		return err
	}
	for l := &s.lines; ; {
		fields, err := r.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		l.total++
		line := bytes.TrimSpace(fields[0])
		switch {
		case len(line) == 0:
			l.empty++
		case line[0] == '{':
			l.objects++
		case isNumber(line):
			l.numbers++
		default:
			if l.words++; l.total == 1 {
				l.first = string(line)
			}
		}
		if s.format == JSONL && (len(line) == 0 || line[0] != '{') {
			return refusal(l.total, `no JSON object: write {"columns":[..],"rows":[[..],..]}, with no rows for an empty result, or {"error":"SQLSTATE"}; or give --format lines`)
		}
	}
}

func isNumber(b []byte) bool {
	_, ok := outcome.ParseNumber(b)
	return ok
}

// headed reports whether the only word in a file of numbers is its first line.
func (s *source) headed() bool {
	l := &s.lines
	return s.format == Lines && l.words == 1 && l.first != "" && l.numbers > 0 && l.objects == 0
}

// trials returns the number of results.
func (s *source) trials() int {
	if s.table != nil {
		return s.table.trials
	}
	return s.lines.total
}

// empty reports whether the file holds nothing at all.
func (s *source) empty() bool { return s.table == nil && s.lines.total == 0 }

// next reads the next result. The error names file and line.
func (s *source) next() (outcome.Outcome, error) {
	s.read++
	if s.rows != nil {
		o, err := s.rows.next()
		return o, s.at(err)
	}
	fields, err := s.records.next()
	if errors.Is(err, io.EOF) {
		err = fmt.Errorf("%d: the file ended while it was read: %w", s.read, io.ErrUnexpectedEOF)
	}
	if err != nil {
		return outcome.Outcome{}, s.at(err)
	}
	o, err := s.parser.ParseLine(fields[0])
	if err != nil {
		return o, fmt.Errorf("%s:%d: %w", s.path, s.records.line, err)
	}
	return o, nil
}

// rest reads the remaining results: an invalid one is an error wherever it is.
func (s *source) rest() error {
	for s.table == nil && s.read < s.trials() {
		if _, err := s.next(); err != nil {
			return err
		}
	}
	return nil
}
