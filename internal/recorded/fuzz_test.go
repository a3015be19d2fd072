package recorded_test

import (
	"errors"
	"io"
	"strconv"
	"testing"

	"github.com/dpwatch/dpwatch/internal/recorded"
)

func fmtFloat(f float64) string { return strconv.FormatFloat(f, 'f', 6, 64) }

func fmtInt(i int) string { return strconv.Itoa(i) }

// FuzzOpen: every file is read or rejected; every row has a value for each column; the number of results is the
// reported one.
func FuzzOpen(f *testing.F) {
	for _, s := range []string{"1\n2\n", "n\n1\n", "a,b\n1,x\n2,\"y\nz\"\n", "t\tn\n1\t\\N\n1\t2\n3\t1\n", `{"rows":[[1]]}` + "\n", "a;b\n1,5;2\n", "\ufeffa,b\r\n1,2\r\n\r\n"} {
		for _, mode := range []uint8{0, 1, 2, 3, 4, 64, 200} {
			f.Add([]byte(s), []byte(s), mode)
		}
	}
	f.Fuzz(func(t *testing.T, a, b []byte, mode uint8) {
		o := recorded.Options{Format: []recorded.Format{recorded.Auto, recorded.Lines, recorded.CSV, recorded.JSONL}[mode%4]}
		if mode&64 != 0 {
			o.Trial, o.FillGaps = "1", mode&128 != 0
		}
		p, err := recorded.Open(file(t, "d0", string(a)), file(t, "d1", string(b)), o)
		if err != nil {
			return
		}
		defer p.Close()
		in := p.Inputs()
		if p.Pairs() != min(in[0].Trials, in[1].Trials) {
			t.Errorf("%d pairs of %d and %d", p.Pairs(), in[0].Trials, in[1].Trials)
		}
		rows := 0
		for range p.Pairs() {
			x, y, err := p.Next()
			if err != nil {
				if in[0].Columns != nil && in[1].Columns != nil {
					t.Fatalf("a table that was read once is refused: %v", err)
				}
				return
			}
			for _, row := range x.Rows {
				if len(row) != len(x.Columns) {
					t.Errorf("a row of %d values under %d columns", len(row), len(x.Columns))
				}
			}
			if len(x.Columns) > 0 && in[0].Columns != nil && len(x.Columns) != len(y.Columns) {
				t.Errorf("%d columns on D0 and %d on D1", len(x.Columns), len(y.Columns))
			}
			rows += len(x.Rows)
		}
		if in[0].Columns != nil && in[0].Unused == 0 && rows != in[0].Rows {
			t.Errorf("%d rows, and the report says %d", rows, in[0].Rows)
		}
		if _, _, err := p.Next(); !errors.Is(err, io.EOF) {
			t.Errorf("after the last pair: %v", err)
		}
	})
}

func BenchmarkOpenLong(b *testing.B) {
	var text []byte
	for trial := range 10_000 {
		for k := range 200 {
			text = strconv.AppendInt(text, int64(trial), 10)
			text = append(text, ",g"...)
			text = strconv.AppendInt(text, int64(k), 10)
			text = append(text, ',')
			text = strconv.AppendFloat(text, 100+float64((trial*7919+k*104729)%100_003)/1000, 'f', 3, 64)
			text = append(text, '\n')
		}
	}
	path := file(b, "long.csv", "trial,grp,n\n"+string(text))
	b.SetBytes(2 * int64(len(text)))
	for b.Loop() {
		p, err := recorded.Open(path, path, recorded.Options{Trial: "trial", Keys: []string{"grp"}})
		if err != nil {
			b.Fatal(err)
		}
		for range p.Pairs() {
			if _, _, err := p.Next(); err != nil {
				b.Fatal(err)
			}
		}
		p.Close()
	}
}
