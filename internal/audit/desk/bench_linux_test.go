package desk_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/audit/desk"
	"github.com/dpwatch/dpwatch/internal/audit/environment"
	"github.com/dpwatch/dpwatch/internal/audit/recognize"
	"github.com/dpwatch/dpwatch/internal/audit/step"
	"github.com/dpwatch/dpwatch/internal/audit/view"
	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/ledger"
	"github.com/dpwatch/dpwatch/internal/outcome"
	"github.com/dpwatch/dpwatch/rewrite"
)

// The load of BenchmarkEvents.
const (
	audits         = 10_000
	arrivals       = 5000 // a second
	turnsPerSecond = 100
	showsPerSecond = 2
)

// load drives a Desk, and measures how long its events take. Its clock is the arrivals' own: an event waits until those
// before it have ended, as the auditor's goroutines do.
type load struct {
	*desk.Desk
	coin   *rand.Rand
	start  time.Time
	free   time.Duration              // when the events before have ended, since the start
	took   map[string][]time.Duration // by kind of event: the event alone
	parts  [][]string                 // of the audits, that are not refreshed yet for a status
	waited []time.Duration            // from an arrival until it has ended, with those before it
}

// cpuTime returns the CPU time of the thread, so that other programs of a busy machine do not count.
func cpuTime() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t)
	return time.Duration(t.Nano())
}

// use measures an event that comes at a time since the start.
func (l *load) use(kind string, at time.Duration, event func()) {
	l.At(l.start.Add(at), l.start.Add(at), &environment.Environment{Copies: "1", Read: l.start})
	began := cpuTime()
	event()
	l.Drain()
	took := cpuTime() - began
	l.free = max(l.free, at) + took
	l.took[kind] = append(l.took[kind], took)
	if kind == "arrive" {
		l.waited = append(l.waited, l.free-at)
	}
}

// arrive captures the query with a number.
func (l *load) arrive(at time.Duration, n int) {
	sql := "SELECT " + strconv.Itoa(n)
	plan := &rewrite.Plan{Key: fmt.Sprintf("%016x%048x", uint64(n+1)*0x9E3779B97F4A7C15, 0), Shape: sql, Summary: sql, Claim: &rewrite.Claim{Epsilon: 1, Source: "comment"}}
	q := capture.Query{SQL: sql, User: "user " + strconv.Itoa(n%50), Completed: l.start.Add(at)}
	l.use("arrive", at, func() {
		l.Admission.Captured()
		l.Admission.Arrive(q, recognize.Recognized{Key: plan.Key, Shape: sql, Plan: plan}, plan.Key, "")
	})
}

// turn begins the next turn and ends it after some rounds of trials, whose time does not count.
func (l *load) turn(at time.Duration) {
	var g desk.Given
	var ok bool
	if l.use("next", at, func() { g, ok, _ = l.Turns.Next() }); !ok {
		return
	}
	var t step.Audit
	l.use("begin", at, func() {
		if s := l.Beginnings.Statement(g.Key); !s.HasTexts {
			l.Beginnings.Rewritten(g.Key, []step.World{{Schema: "d1", SQL: view.SQLPair{D0: s.Query.SQL, D1: s.Query.SQL}}})
		}
		if l.Beginnings.Compare(g.Key, &environment.Environment{Copies: "1"}, true) == desk.FromZero {
			_ = l.Beginnings.Begin(g.Key, &desk.Begun{Processes: 1, Fleet: ledger.Fleet{Begun: 1}}, nil)
		}
		t = l.Beginnings.Turn(g.Key)
	})
	for range 20 {
		var round [2]outcome.Outcome
		for i := range round {
			round[i], _ = new(outcome.Parser).ParseLine(strconv.AppendFloat(nil, l.coin.ExpFloat64()-l.coin.ExpFloat64(), 'g', -1, 64))
		}
		t.Evidence.Add(round[:])
	}
	o := desk.Outcome{Evidence: t.Evidence, Took: 50 * time.Millisecond, Fresh: true, Progress: step.Progress{Reports: step.Reports(t.Evidence, "comment", false)}}
	l.use("end", at, func() {
		l.Turns.TakeOutcome(g.Key, o)
		l.Turns.End(g.Key, false, o)
	})
}

// show begins a status, which looks at the audits one part after the other, between arrivals.
func (l *load) show(at time.Duration) {
	var keys []string
	l.use("keys", at, func() { keys = l.Overview.Keys() })
	l.parts = slices.Collect(slices.Chunk(keys, 100))
}

// showPart looks at the next part for a status; the last one completes it.
func (l *load) showPart(at time.Duration) {
	if len(l.parts) == 0 {
		return
	}
	l.use("refresh", at, func() { l.Overview.Refresh(l.parts[0]) })
	if l.parts = l.parts[1:]; len(l.parts) == 0 {
		l.use("show", at, func() { l.Overview.Show() })
	}
}

// newLoad returns a Desk with audits that wait for their first turns.
func newLoad() *load {
	l := &load{
		Desk: desk.New(&desk.Options{
			D0: "d0", D1: []string{"d1"}, Analysis: analysis.Options{Confidence: 0.95, MaxTrials: 10_000}, MaxAudits: audits, PerShape: 20,
			RetryAfter: time.Second, WatchShare: 0.1, WatchEvery: time.Minute, Kept: true, Findings: true, Say: error.Error, Seed: func() uint64 { return 1 },
			Contain: func(_ string, f func() error) error { return f() },
		}, "secret"),
		coin: rand.New(rand.NewPCG(1, 2)), start: time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC), took: map[string][]time.Duration{},
	}
	for n := range audits {
		l.arrive(0, n)
	}
	clear(l.took)
	l.waited, l.free = nil, 0
	return l
}

// BenchmarkStatus measures the status of 10,000 audits, of which 3,000 have had a turn and 100 have one between two
// statuses, with its JSON form.
func BenchmarkStatus(b *testing.B) {
	l := newLoad()
	at := time.Duration(0)
	turns := func(n int) {
		for range n {
			at += time.Millisecond
			l.turn(at)
		}
	}
	turns(3000)
	var text []byte
	for b.Loop() {
		b.StopTimer()
		turns(100)
		b.StartTimer()
		s, all := l.Overview.Show()
		s.Audits = all.Entries("")
		var err error
		if text, err = s.AppendJSON(text[:0]); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(len(text)), "bytes")
}

// BenchmarkEvents measures the events of a desk with 10,000 audits, at 5,000 arrivals a second, of which a hundredth
// are new queries, with turns and statuses. It reports the 99th percentile of the time that an event takes, for each
// kind and for all, and of the time from an arrival until it has ended, with the events before it (wait).
func BenchmarkEvents(b *testing.B) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	l := newLoad()
	i := 0
	for b.Loop() {
		at := time.Duration(i) * time.Second / arrivals
		n := l.coin.IntN(audits)
		if i%100 == 0 {
			n = audits + i
		}
		l.arrive(at, n)
		if i%(arrivals/turnsPerSecond) == 0 {
			l.turn(at)
		}
		if i%(arrivals/showsPerSecond) == 0 {
			l.show(at)
		}
		l.showPart(at)
		i++
	}
	var every []time.Duration
	for kind, all := range l.took {
		report(b, kind, all)
		every = append(every, all...)
	}
	report(b, "event", every)
	report(b, "wait", l.waited)
}

// report reports the 99th percentile.
func report(b *testing.B, kind string, all []time.Duration) {
	b.Helper()
	slices.Sort(all)
	b.ReportMetric(float64(all[len(all)*99/100].Microseconds()), "p99-"+kind+"-µs")
}
