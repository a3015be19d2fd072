package main

import (
	"bufio"
	"fmt"
	"io"
	"os"

	"github.com/dpwatch/dpwatch/internal/outcome"
)

// maxLineBytes bounds one recorded result.
const maxLineBytes = 64 << 20

// lines reads recorded results, one a line, after it counted them.
type lines struct {
	path  string
	total int
	n     int // lines read
	file  *os.File
	scan  *bufio.Scanner
}

// openLines opens and counts. What cannot be read twice (a pipe) is copied to a temporary file first.
func openLines(path string) (*lines, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read results: %w", err)
	}
	l := &lines{path: path, file: f}
	if err := l.prepare(); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

func (l *lines) prepare() error {
	info, err := l.file.Stat()
	if err != nil {
		return fmt.Errorf("read results: %w", err)
	}
	if info.IsDir() {
		return fmt.Errorf("read results: %s is a directory; give a file with one result a line", l.path)
	}
	if !info.Mode().IsRegular() {
		if err := l.spool(); err != nil {
			return err
		}
	}
	if err := l.rewind(); err != nil {
		return err
	}
	for l.scan.Scan() {
		l.total++
	}
	if err := l.scan.Err(); err != nil {
		return fmt.Errorf("%s:%d: %w", l.path, l.total+1, err)
	}
	return l.rewind()
}

func (l *lines) spool() error {
	spool, err := os.CreateTemp("", "dpwatch-results-*")
	if err != nil {
		return fmt.Errorf("read results: %w", err)
	}
	_ = os.Remove(spool.Name()) // it lives as long as it is open
	_, err = io.Copy(spool, l.file)
	_ = l.file.Close()
	l.file = spool
	if err != nil {
		return fmt.Errorf("%s: %w", l.path, err)
	}
	return nil
}

func (l *lines) rewind() error {
	if _, err := l.file.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("%s: %w", l.path, err)
	}
	l.scan = bufio.NewScanner(l.file)
	l.scan.Buffer(make([]byte, 0, 64<<10), maxLineBytes)
	return nil
}

// Close closes the file.
func (l *lines) Close() { _ = l.file.Close() }

// rest reads the lines that no audit asked for: a broken one is a fault wherever it stands.
func (l *lines) rest() error {
	for l.n < l.total {
		if _, err := l.outcome(); err != nil {
			return err
		}
	}
	return nil
}

// outcome reads the next line. The error names file and line.
func (l *lines) outcome() (outcome.Outcome, error) {
	l.n++
	if !l.scan.Scan() {
		return outcome.Outcome{}, fmt.Errorf("%s:%d: the file ended while it was read: %w", l.path, l.n, io.ErrUnexpectedEOF)
	}
	o, err := outcome.ParseLine(l.scan.Bytes())
	if err != nil {
		return o, fmt.Errorf("%s:%d: %w", l.path, l.n, err)
	}
	return o, nil
}
