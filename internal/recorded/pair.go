package recorded

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/dpwatch/dpwatch/internal/outcome"
)

// Pair holds the results of both worlds. It is not safe for concurrent use.
type Pair struct {
	files  [2]*source
	inputs [2]Input
	pairs  int
	read   int // pairs that Next returned
}

// Open reads both files once and checks that they fit the options and each other. The caller must close the pair.
func Open(d0, d1 string, o Options) (*Pair, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	p := &Pair{}
	for i, path := range []string{d0, d1} {
		s, err := open(path)
		if err != nil {
			p.Close()
			return nil, err
		}
		p.files[i] = s
	}
	if err := p.prepare(o); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

func (o *Options) validate() error {
	switch o.Format {
	case "", Auto, Lines, CSV, JSONL:
	default:
		return fmt.Errorf("--format %q: must be auto, lines, csv or jsonl", o.Format)
	}
	switch {
	case o.Trial == "" && len(o.Keys) > 0:
		return errors.New("--key needs --trial: the rows of one trial have keys")
	case o.Trial == "" && o.FillGaps:
		return errors.New("--fill-gaps needs --trial, the column with the number of the trial")
	}
	return nil
}

// Close closes both files.
func (p *Pair) Close() {
	for _, s := range p.files {
		if s != nil {
			s.close()
		}
	}
}

func (p *Pair) prepare(o Options) error {
	if err := p.survey(o); err != nil {
		return err
	}
	if o.Format != Lines && p.files[0].headed() && p.files[1].headed() && p.files[0].lines.first == p.files[1].lines.first {
		o.Format = CSV // one column with a header
		if err := p.survey(o); err != nil {
			return err
		}
	}
	if err := p.agree(); err != nil {
		return err
	}
	filled, err := p.gaps(o)
	if err != nil {
		return err
	}
	return p.begin(filled)
}

// survey reads both files concurrently.
func (p *Pair) survey(o Options) error {
	var faults [2]error
	var group sync.WaitGroup
	for i, s := range p.files {
		group.Go(func() { faults[i] = s.survey(o) })
	}
	group.Wait()
	return cmp.Or(faults[0], faults[1])
}

// agree checks that both files are of the same kind. An empty file fits any.
func (p *Pair) agree() error {
	a, b := p.files[0], p.files[1]
	if a.empty() || b.empty() {
		return nil
	}
	if (a.table == nil) != (b.table == nil) || a.format != b.format {
		return fmt.Errorf("%s reads as %s and %s as %s: write both alike, or give --format", a.path, a.describe(), b.path, b.describe())
	}
	if a.table == nil {
		return nil
	}
	if x, y := &a.table.layout, &b.table.layout; !slices.Equal(x.names, y.names) {
		return fmt.Errorf("%s reads as %s and %s as %s: write the same columns in the same order",
			a.path, a.describe(), b.path, b.describe())
	}
	return nil
}

func (s *source) describe() string {
	if s.table == nil {
		return "one result a line"
	}
	return fmt.Sprintf("%s with the columns %s", s.format, strings.Join(s.table.layout.names, ", "))
}

// gaps handles trial numbers missing in a file: a trial that returned no row leaves none in a table of rows, and
// dropping such trials would hide a leak. It returns the range of numbers to fill, or nil.
func (p *Pair) gaps(o Options) (*trialRange, error) {
	a, b := p.files[0], p.files[1]
	if o.Trial == "" || a.table == nil || b.table == nil {
		return nil, nil
	}
	x, y := &a.table.ids, &b.table.ids
	if o.FillGaps {
		for _, s := range p.files {
			switch ids := &s.table.ids; {
			case ids.broken:
				return nil, fmt.Errorf("%s: --fill-gaps: column %s holds trials that are no whole numbers", s.path, o.Trial)
			case ids.descends > 0:
				return nil, s.at(refusal(ids.descends, "--fill-gaps: the number of the trial is below the one before: sort the file by column %s", o.Trial))
			}
		}
		if x.n == 0 || y.n == 0 {
			return nil, nil
		}
		r := &trialRange{min(x.low, y.low), max(x.high, y.high)}
		if most := 10 * int64(x.n+y.n); r.high-r.next >= most {
			return nil, fmt.Errorf("--fill-gaps: the numbers of the trials go from %d to %d, and only %d and %d of them have rows: number the trials without such gaps", r.next, r.high, x.n, y.n)
		}
		return r, nil
	}
	const advice = "a trial that returned no row is an outcome too: give --fill-gaps if that is what happened, or number the trials anew"
	for _, s := range p.files {
		if n := s.table.ids.missing(); n > 0 {
			return nil, fmt.Errorf("%s: %d of the trials' numbers are missing: %s", s.path, n, advice)
		}
	}
	overlap := !x.broken && !y.broken && x.low <= y.high && y.low <= x.high
	if overlap && (x.low != y.low || x.high != y.high) {
		return nil, fmt.Errorf("the trials are %d to %d in %s and %d to %d in %s: %s", x.low, x.high, a.path, y.low, y.high, b.path, advice)
	}
	return nil, nil
}

// begin starts the second reading.
func (p *Pair) begin(fill *trialRange) error {
	var kinds [][text + 1]int
	for _, s := range p.files {
		if s.table == nil {
			continue
		}
		if kinds == nil {
			kinds = make([][text + 1]int, len(s.table.columns))
		}
		for i := range s.table.columns {
			for k, n := range s.table.columns[i].kinds {
				kinds[i][k] += n
			}
		}
	}
	for i, s := range p.files {
		r, err := s.rewind()
		if err != nil {
			return fmt.Errorf("%s: %w", s.path, err)
		}
		s.records = r
		p.inputs[i] = s.input()
		if s.table == nil {
			continue
		}
		if s.rows, err = newTableReader(r, &s.table.layout, kinds); err != nil {
			return s.at(err)
		}
		if fill != nil {
			s.rows.expected = &trialRange{fill.next, fill.high}
			all := int(fill.high - fill.next + 1)
			p.inputs[i].Filled = all - s.table.trials
			p.inputs[i].Empty += p.inputs[i].Filled
			p.inputs[i].Trials = all
		}
	}
	p.pairs = min(p.inputs[0].Trials, p.inputs[1].Trials)
	for i := range p.inputs {
		p.inputs[i].Unused = p.inputs[i].Trials - p.pairs
	}
	return nil
}

func (s *source) input() Input {
	in := Input{Format: s.format, Trials: s.trials(), Rows: s.trials() - s.lines.empty, Empty: s.lines.empty}
	if s.format == Lines && s.lines.objects > 0 && s.lines.objects+s.lines.empty == s.lines.total {
		in.Format = JSONL
	}
	if s.lines.objects > 0 {
		in.Rows = 0 // not counted
	}
	if l := &s.lines; s.format == Lines && l.words > 0 && l.numbers > 0 {
		in.warnings = append(in.warnings, fmt.Sprintf("%s holds %d numbers and %d words: each word is an outcome of its own", s.path, l.numbers, l.words))
		if l.words == 1 && l.first != "" {
			in.warnings = append(in.warnings, fmt.Sprintf("%s:1: the only word among numbers, and counted as a trial: if it is the name of the column, give --format csv", s.path))
		}
	}
	t := s.table
	if t == nil {
		return in
	}
	l := &t.layout
	in.Columns, in.Rows = l.names, t.records
	if l.trial >= 0 {
		in.Trial = l.names[l.trial]
	} else {
		in.Empty = t.blank
	}
	for _, i := range l.keys {
		in.Keys = append(in.Keys, l.names[i])
	}
	for _, w := range t.warnings() {
		in.warnings = append(in.warnings, s.path+": "+w)
	}
	return in
}

// Inputs describes how each file was read, D0 first.
func (p *Pair) Inputs() [2]Input { return p.inputs }

// Pairs returns the number of pairs: that of the trials in the shorter file.
func (p *Pair) Pairs() int { return p.pairs }

// Warnings returns unusual but valid properties of the files.
func (p *Pair) Warnings() (all []string) {
	for _, in := range p.inputs {
		all = append(all, in.warnings...)
	}
	return all
}

// Next returns the next pair of results. After Pairs calls the error is io.EOF; other errors name file and line.
func (p *Pair) Next() (d0, d1 outcome.Outcome, err error) {
	if p.read == p.pairs {
		return d0, d1, io.EOF
	}
	p.read++
	if d0, err = p.files[0].next(); err == nil {
		d1, err = p.files[1].next()
	}
	return d0, d1, err
}

// Rest reads the results that Next did not return: an invalid result is an error wherever it is.
func (p *Pair) Rest() error {
	for _, s := range p.files {
		if err := s.rest(); err != nil {
			return err
		}
	}
	return nil
}
