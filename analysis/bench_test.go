package analysis_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/dpwatch/dpwatch/analysis"
)

// BenchmarkCells is what a pair costs in audits of answers as a server sends them: processor time and the memory that the
// audit holds at its end.
func BenchmarkCells(b *testing.B) {
	number := func(x float64) analysis.Value {
		return analysis.Value{Kind: analysis.Number, Num: x, Text: strconv.FormatFloat(x, 'g', -1, 64)}
	}
	noisy := func(r *rand.Rand, x float64) analysis.Value { return number(1000 + x + lap(r, 1)) }
	for _, cell := range []struct {
		name  string
		pairs int
		one   func(r *rand.Rand, x float64) analysis.Outcome
	}{
		{"one value", 10_000, func(r *rand.Rand, x float64) analysis.Outcome {
			return analysis.Outcome{Columns: []analysis.Column{{Name: "x"}}, Rows: [][]analysis.Value{{noisy(r, x)}}}
		}},
		{"10 columns", 5000, func(r *rand.Rand, x float64) (o analysis.Outcome) {
			o = analysis.Outcome{Rows: [][]analysis.Value{nil}}
			for i := range 10 {
				o.Columns = append(o.Columns, analysis.Column{Name: "c" + strconv.Itoa(i)})
				o.Rows[0] = append(o.Rows[0], noisy(r, x))
				x = 0
			}
			return o
		}},
		{"200 groups", 2000, func(r *rand.Rand, x float64) (o analysis.Outcome) {
			o = analysis.Outcome{Columns: []analysis.Column{{Name: "store_id", Discrete: true}, {Name: "sum"}}}
			for i := range 200 {
				o.Rows = append(o.Rows, []analysis.Value{number(float64(i)), noisy(r, x)})
				x = 0
			}
			return o
		}},
		{"texts", 5000, func(r *rand.Rand, x float64) analysis.Outcome {
			return word([...]string{"north", "north-east", "east", "south-east", "south", "south-west", "west"}[min(max(int(3+x/2+lap(r, 1)), 0), 6)])
		}},
		{"fresh texts", 5000, func(r *rand.Rand, _ float64) analysis.Outcome {
			return word(fmt.Sprintf(`{"id": "%016x", "total": %.3f, "note": "as of %d"}`, r.Uint64(), 100+lap(r, 1), r.IntN(1000)))
		}},
	} {
		b.Run(cell.name, func(b *testing.B) { costs(b, cell.pairs, cell.one) })
	}
}

// costs audits a right mechanism. Answers are drawn outside of the time that is taken.
func costs(b *testing.B, pairs int, one func(r *rand.Rand, x float64) analysis.Outcome) {
	const batch = 100
	r := rand.New(rand.NewPCG(1, 2))
	var time time.Duration
	var heap uint64
	for b.Loop() {
		empty := liveHeap()
		a, err := analysis.New(analysis.Claim{Epsilon: 1}, analysis.Options{MaxTrials: pairs})
		if err != nil {
			b.Fatal(err)
		}
		for k := 0; k < pairs; k += batch {
			var all [batch][2]analysis.Outcome
			for i := range all {
				all[i] = [2]analysis.Outcome{one(r, 0), one(r, 1)}
			}
			before := processTime(b)
			for i := range all {
				a.Add(all[i][0], all[i][1])
			}
			a.Report()
			time += processTime(b) - before
		}
		heap = max(liveHeap(), empty) - empty
		runtime.KeepAlive(a)
	}
	b.ReportMetric(float64(time)/float64(pairs)/float64(b.N), "cpu-ns/pair")
	b.ReportMetric(float64(heap)/1024, "KB/audit")
}

func liveHeap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// BenchmarkAddSingle is an audit of a single value as run makes it: with a report after every 20 pairs.
func BenchmarkAddSingle(b *testing.B) { benchmark(b, 0, 10_000, 20) }

// BenchmarkAddColumns is the same for 20 groups of two columns.
func BenchmarkAddColumns(b *testing.B) { benchmark(b, 20, 10_000, 20, 1) }

// BenchmarkFigures is what the page of a query with 200 groups draws at once, and the privacy profile, which it asks for
// when a reader does.
func BenchmarkFigures(b *testing.B) {
	a, err := analysis.New(analysis.Claim{Epsilon: 1}, analysis.Options{})
	if err != nil {
		b.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	one := func() analysis.Outcome {
		x := make([]float64, 200)
		for i := range x {
			x[i] = lap(r, 1)
		}
		return groups(x...)
	}
	for range 2000 {
		a.Add(one(), one())
	}
	for name, of := range map[string]func() analysis.Figures{"quick": a.QuickFigures, "with the profile": a.Figures} {
		b.Run(name, func(b *testing.B) {
			before := processTime(b)
			for b.Loop() {
				of()
			}
			b.ReportMetric((processTime(b)-before).Seconds()/float64(b.N), "cpu-s/op")
		})
	}
}

// benchmark audits a right mechanism, with a report after every batch. The noise is drawn into the same results again
// and again, so that little but the audit is timed. There are more columns of numbers where more are given; no groups
// are a single value.
func benchmark(b *testing.B, n, pairs, batch int, more ...float64) {
	r := rand.New(rand.NewPCG(1, 2))
	x := groups(make([]float64, n)...)
	y := groups(make([]float64, n)...)
	if n == 0 {
		x, y, n = value(0), value(0), 1
	}
	for range more {
		for _, o := range [...]*analysis.Outcome{&x, &y} {
			o.Columns = append(o.Columns, o.Columns[1])
			for i := range o.Rows {
				o.Rows[i] = append(o.Rows[i], o.Rows[i][1])
			}
		}
	}
	b.ReportAllocs()
	before := processTime(b)
	for b.Loop() {
		a, err := analysis.New(analysis.Claim{Epsilon: 1}, analysis.Options{MaxTrials: pairs})
		if err != nil {
			b.Fatal(err)
		}
		for k := range pairs {
			for i := range n {
				for c := min(1, len(x.Columns)-1); c < len(x.Columns); c++ {
					x.Rows[i][c].Num = lap(r, 1)
					y.Rows[i][c].Num = lap(r, 1)
				}
			}
			y.Rows[0][len(y.Columns)-1].Num++
			if a.Add(x, y); (k+1)%batch == 0 {
				a.Report()
			}
		}
	}
	b.ReportMetric(float64(processTime(b)-before)/float64(pairs)/float64(b.N), "cpu-ns/pair")
	b.ReportMetric(float64(pairs)*float64(b.N)/b.Elapsed().Seconds(), "pairs/s")
}

// processTime returns the processor time of this process, which other processes do not add to.
func processTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
