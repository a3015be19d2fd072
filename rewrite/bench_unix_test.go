//go:build unix

package rewrite_test

import (
	"syscall"
	"testing"
)

// BenchmarkAgainstParseDeparse runs both in turn and reports the ratio of their processor time, "x", garbage collection
// included. It must stay below 3. Unlike wall time, processor time is stable on a busy machine.
func BenchmarkAgainstParseDeparse(b *testing.B) {
	r := newRewriter(b, options())
	used := func() int64 {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			b.Fatal(err)
		}
		return u.Utime.Nano() + u.Stime.Nano()
	}
	var ours, theirs int64
	for b.Loop() {
		began := used()
		for range 10 {
			rewriteTwo(b, r)
		}
		between := used()
		for range 10 {
			parseDeparse(b)
		}
		ours, theirs = ours+between-began, theirs+used()-between
	}
	b.ReportMetric(float64(ours)/float64(theirs), "x")
	b.ReportMetric(float64(ours)/float64(10*b.N), "cpu-ns/rewrite")
	b.ReportMetric(float64(theirs)/float64(10*b.N), "cpu-ns/parse+deparse")
}
