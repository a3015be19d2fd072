package analysis_test

import (
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"github.com/dpwatch/dpwatch/analysis"
)

// BenchmarkSingle is whole audits of 10,000 pairs of a single value.
func BenchmarkSingle(b *testing.B) { benchmark(b, 1, 10_000, 10_000) }

// BenchmarkGroups is whole audits of 10,000 pairs of 200 groups.
func BenchmarkGroups(b *testing.B) { benchmark(b, 200, 10_000, 10_000) }

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
