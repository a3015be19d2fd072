package recorded

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"slices"

	"github.com/dpwatch/dpwatch/internal/outcome"
)

// Shuffled holds the results of both worlds, each in a random order of its own. They are stored in a temporary file, so
// that memory does not grow with them. It is not safe for concurrent use.
type Shuffled struct {
	worlds [2]shelf
	n      int // pairs
	next   int
}

// Shuffle reads all pairs and returns them in an order that depends only on the seed. It first calls each for every
// pair, in the order of the files; the pair is valid until each returns. The caller must close the result.
func Shuffle(p *Pair, seed uint64, each func(d0, d1 outcome.Outcome)) (*Shuffled, error) {
	s := &Shuffled{n: p.Pairs()}
	for w := range s.worlds {
		if err := s.worlds[w].open(); err != nil {
			s.Close()
			return nil, err
		}
	}
	for _, f := range p.files {
		f.parser.Reuse = true
	}
	for range s.n {
		d0, d1, err := p.Next()
		if err == nil {
			each(d0, d1)
			err = errors.Join(s.worlds[0].add(d0), s.worlds[1].add(d1))
		}
		if err != nil {
			s.Close()
			return nil, err
		}
	}
	for w := range s.worlds {
		if err := s.worlds[w].out.Flush(); err != nil {
			s.Close()
			return nil, fmt.Errorf("shuffle results: %w", err)
		}
	}
	s.Reorder(seed)
	return s, nil
}

// Reorder begins again with another order. It depends on the seeds of all orders so far.
func (s *Shuffled) Reorder(seed uint64) {
	s.next = 0
	for w := range s.worlds {
		order := s.worlds[w].at
		rand.New(rand.NewPCG(seed, uint64(w))).Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	}
}

// Next returns the next pair, which is valid until the next call, and io.EOF after all of them.
func (s *Shuffled) Next() (d0, d1 outcome.Outcome, err error) {
	if s.next == s.n {
		return d0, d1, io.EOF
	}
	s.next++
	if d0, err = s.worlds[0].get(s.next - 1); err == nil {
		d1, err = s.worlds[1].get(s.next - 1)
	}
	return d0, d1, err
}

// Close removes the temporary files.
func (s *Shuffled) Close() {
	for _, w := range s.worlds {
		if w.file != nil {
			_ = w.file.Close()
		}
	}
}

// shelf stores results in a file.
type shelf struct {
	file    *os.File
	out     *bufio.Writer
	at      [][2]int64 // offset and length of each
	end     int64
	columns [][]outcome.Column // the distinct ones
	texts   []string           // the first at each position of a result, row by row: results have the same keys
	buf     []byte
	values  []outcome.Value // of the last result returned, row by row
	rows    [][]outcome.Value
}

// sameText is stored in place of the kind and the text of a value that is the first text at its position.
const sameText = 0xFF

func (s *shelf) open() error {
	f, err := os.CreateTemp("", "dpwatch-results-*")
	if err != nil {
		return fmt.Errorf("shuffle results: %w", err)
	}
	_ = os.Remove(f.Name()) // the file exists while it is open
	s.file, s.out = f, bufio.NewWriterSize(f, 1<<18)
	return nil
}

func (s *shelf) add(o outcome.Outcome) error {
	b := binary.AppendUvarint(s.buf[:0], uint64(s.columnsOf(o.Columns)))
	b = appendText(b, o.SQLState)
	b = binary.AppendUvarint(b, uint64(len(o.Rows)))
	n := 0
	for _, row := range o.Rows {
		b = binary.AppendUvarint(b, uint64(len(row)))
		for i := range row {
			if n == len(s.texts) {
				s.texts = append(s.texts, row[i].Text)
			}
			switch v := &row[i]; {
			case v.Kind == outcome.Number || v.Kind == outcome.Bool:
				b = binary.LittleEndian.AppendUint64(append(b, byte(v.Kind)), math.Float64bits(v.Num))
				b = appendText(b, v.Text)
			case v.Kind == outcome.Text && v.Text == s.texts[n]:
				b = append(b, sameText)
			case v.Kind == outcome.Text:
				b = appendText(append(b, byte(v.Kind)), v.Text)
			default:
				b = append(b, byte(v.Kind))
			}
			n++
		}
	}
	s.buf = b
	s.at = append(s.at, [2]int64{s.end, int64(len(b))})
	s.end += int64(len(b))
	if _, err := s.out.Write(b); err != nil {
		return fmt.Errorf("shuffle results: %w", err)
	}
	return nil
}

// columnsOf returns the index of a description of columns.
func (s *shelf) columnsOf(c []outcome.Column) int {
	for i := len(s.columns) - 1; i >= 0; i-- {
		if slices.Equal(s.columns[i], c) {
			return i
		}
	}
	s.columns = append(s.columns, c)
	return len(s.columns) - 1
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func (s *shelf) get(i int) (o outcome.Outcome, err error) {
	place := s.at[i]
	s.buf = slices.Grow(s.buf[:0], int(place[1]))[:place[1]]
	if _, err := s.file.ReadAt(s.buf, place[0]); err != nil {
		return o, fmt.Errorf("shuffle results: %w", err)
	}
	b := s.buf
	number := func() int {
		v, n := binary.Uvarint(b)
		b = b[n:]
		return int(v)
	}
	text := func(known string) string { // known is returned if it is equal, as the last text at a position often is
		n := number()
		t := b[:n]
		b = b[n:]
		if string(t) == known {
			return known
		}
		return string(t)
	}
	o.Columns, o.SQLState = s.columns[number()], text("")
	last, all, rows := s.values, s.values[:0], s.rows[:0]
	for range number() {
		begin := len(all)
		for range number() {
			v, known := outcome.Value{Kind: outcome.Kind(b[0])}, ""
			if len(all) < len(last) {
				known = last[len(all)].Text
			}
			b = b[1:]
			switch v.Kind {
			case outcome.Number, outcome.Bool:
				v.Num, b = math.Float64frombits(binary.LittleEndian.Uint64(b)), b[8:]
				v.Text = text(known)
			case outcome.Text:
				v.Text = text(known)
			case sameText:
				v.Kind, v.Text = outcome.Text, s.texts[len(all)]
			}
			all = append(all, v)
		}
		rows = append(rows, all[begin:len(all):len(all)])
	}
	if len(rows) > 0 {
		o.Rows = rows
	}
	s.values, s.rows = all, rows
	return o, nil
}
