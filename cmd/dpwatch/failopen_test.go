package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/internal/longtest"
)

// load is traffic whose every answer is checked; the test fails if a session is disturbed. It runs at full speed while
// more waits for it and for a while after, and slowly otherwise, to leave the processor to the tested code.
type load struct {
	statements atomic.Uint64
	goal       atomic.Uint64 // full speed up to this count
	stop       chan struct{}
	clients    sync.WaitGroup
}

// afterwards is the number of further statements at full speed, so that the test's next step happens under load.
const afterwards = 1000

// startLoad runs statements on that many sessions until wait is called.
func startLoad(t *testing.T, s *sidecar, sessions int) *load {
	t.Helper()
	l := &load{stop: make(chan struct{})}
	for i := range sessions {
		conn := s.connect(t)
		l.clients.Go(func() {
			for n := i; ; n++ {
				select {
				case <-l.stop:
					return
				default:
				}
				if err := checked(conn, n); err != nil {
					t.Errorf("a session noticed: statement %d: %v", n, err)
					return
				}
				if l.statements.Add(1) > l.goal.Load()+afterwards {
					time.Sleep(10 * time.Millisecond)
				}
			}
		})
	}
	return l
}

// checked runs one statement and checks the answer.
func checked(conn *pgx.Conn, n int) error {
	var got int
	mode := pgx.QueryExecModeCacheStatement
	if n%3 == 0 {
		mode = pgx.QueryExecModeSimpleProtocol
	}
	if err := conn.QueryRow(context.Background(), "SELECT count(*) + $1::int FROM people", mode, n).Scan(&got); err != nil {
		return err
	}
	if got != 50+n {
		return fmt.Errorf("got %d, want %d", got, 50+n)
	}
	return nil
}

// more waits until the load has run n more statements.
func (l *load) more(t *testing.T, s *sidecar, n uint64) {
	t.Helper()
	goal := l.statements.Load() + n
	l.goal.Store(goal)
	s.until(t, "more statements", func() bool { return l.statements.Load() >= goal || t.Failed() })
}

func (l *load) wait() {
	close(l.stop)
	l.clients.Wait()
}

func (s *sidecar) metric(t *testing.T, name string) int {
	t.Helper()
	_, body := s.get(t, "/metrics")
	m := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(name) + ` ([0-9.e+]+)$`).FindStringSubmatch(body)
	if m == nil {
		t.Fatalf("/metrics has no %s", name)
	}
	var v float64
	_, _ = fmt.Sscan(m[1], &v)
	return int(v)
}

// residentKB returns the relay's resident memory in kB, 0 if unknown.
func (s *sidecar) residentKB() int {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.Process.Pid))
	m := regexp.MustCompile(`VmRSS:\s+(\d+) kB`).FindSubmatch(status)
	if err != nil || m == nil {
		return 0
	}
	return atoi(string(m[1]))
}

func (s *sidecar) auditor(t *testing.T, not int) int {
	t.Helper()
	pid := 0
	s.until(t, "an auditor", func() bool {
		pid = auditorOf(t, s.Process.Pid)
		return pid != 0 && pid != not
	})
	return pid
}

// TestLoadAuditorKilled: repeated kill -9 of the auditor.
func TestLoadAuditorKilled(t *testing.T) {
	t.Parallel()
	s := startSidecar(t, "")
	l := startLoad(t, s, 4)
	pid := 0
	for range 4 {
		pid = s.auditor(t, pid)
		l.more(t, s, 100)
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		l.more(t, s, 100)
	}
	l.wait()
}

// TestLoadShadowAway: the shadow database is unreachable from the start.
func TestLoadShadowAway(t *testing.T) {
	t.Parallel()
	s := startSidecar(t, "BROKEN SHADOW")
	l := startLoad(t, s, 4)
	l.more(t, s, 2000)
	l.wait()
	if code, _ := s.get(t, "/readyz"); code != http.StatusOK {
		t.Errorf("/readyz answers %d", code)
	}
}

// TestLoadAuditorStopped: the consumer of all captured queries hangs (SIGSTOP) while the traffic continues. Queries
// that do not fit are dropped and counted, and the relay's memory does not grow. With DPWATCH_TEST_HANG (1m, say) it
// hangs for that long, and times are compared too: a client is served as fast as by a sidecar whose auditor runs.
// Without it the test does not depend on the speed of the machine.
func TestLoadAuditorStopped(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	s := startSidecar(t, `TUNING {"queue_length": 64, "auditor_hang_limit": "1h"}`)
	pid := s.auditor(t, 0)
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Kill(pid, syscall.SIGCONT) }()
	l := startLoad(t, s, 4)
	// The kernel first buffers some for the stopped reader, and the queue drops some of a burst.
	s.until(t, "nearly all of 6000 captured statements are dropped", func() bool {
		was := s.metric(t, "dpwatch_capture_dropped_total")
		l.more(t, s, 6000)
		return s.metric(t, "dpwatch_capture_dropped_total") >= was+5000 || t.Failed()
	})
	before, dropped := s.residentKB(), s.metric(t, "dpwatch_capture_dropped_total")
	hang, _ := time.ParseDuration(os.Getenv("DPWATCH_TEST_HANG"))
	for hung := time.Now(); ; { // at least once
		l.more(t, s, 6000)
		if time.Since(hung) >= hang || t.Failed() {
			break
		}
	}
	t.Logf("%d statements dropped; the relay's memory went from %d to %d kB", s.metric(t, "dpwatch_capture_dropped_total")-dropped, before, s.residentKB())
	// Each of five sessions can hold its capture budget of 1 MiB, and the garbage collector as much again; the
	// statements of a minute are several times that.
	if grown := s.residentKB() - before; grown > 24<<10 && runtime.GOOS == "linux" {
		t.Errorf("the relay's memory grew by %d kB while the auditor hung", grown)
	}
	l.wait()

	if hang > 0 {
		well := startSidecar(t, "")
		well.auditor(t, 0)
		slow, fast := alternate(t, s.connect(t), well.connect(t))
		t.Logf("20 statements: %v with a stopped auditor, %v with a running one", slow, fast)
		if slow > 2*fast {
			t.Errorf("20 statements take %v with a stopped auditor, %v with a running one", slow, fast)
		}
	}
	if now := auditorOf(t, s.Process.Pid); now != pid {
		t.Errorf("the auditor is %d, was %d: it did not stay stopped", now, pid)
	}
	heard := s.status(t).Audit.Captured
	_ = syscall.Kill(pid, syscall.SIGCONT)
	s.until(t, "it goes on", func() bool { return s.status(t).Audit.Captured > heard })
}

// alternate measures 20 statements on each of two sessions in turn and returns the lower quartiles, which other load on
// the machine affects least.
func alternate(t *testing.T, a, b *pgx.Conn) (timeA, timeB time.Duration) {
	t.Helper()
	type side struct {
		conn  *pgx.Conn
		times []time.Duration
	}
	one, other := &side{conn: a}, &side{conn: b}
	sides := []*side{one, other}
	for n := range 60 {
		slices.Reverse(sides)
		for _, side := range sides {
			time.Sleep(30 * time.Millisecond) // the running auditor works now, not in the other's turn
			began := time.Now()
			for i := range 20 {
				if err := checked(side.conn, n+i); err != nil {
					t.Fatal(err)
				}
			}
			side.times = append(side.times, time.Since(began))
		}
	}
	slices.Sort(one.times)
	slices.Sort(other.times)
	return one.times[15], other.times[15]
}

// TestLoadAuditorHangs: a stopped auditor is detected, killed and replaced, under load.
func TestLoadAuditorHangs(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	s := startSidecar(t, `TUNING {"auditor_hang_limit": "3s"}`)
	l := startLoad(t, s, 2)
	pid := s.auditor(t, 0)
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	s.auditor(t, pid)
	l.more(t, s, 100)
	l.wait()
}

// TestLoadCrashingStatement: a statement that PostgreSQL completes and that crashes the process that parses it, sent
// repeatedly with different constants. The program runs with a small stack, on which fewer levels crash it than are
// refused before parsing.
func TestLoadCrashingStatement(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	if _, err := exec.LookPath("prlimit"); err != nil {
		t.Skip("SKIPPED: prlimit is not installed")
	}
	s := startSidecar(t, "")
	// New processes take the stack size of their threads from the limit.
	limit := exec.Command("prlimit", "--stack=262144", "--pid", itoa(s.Process.Pid))
	if out, err := limit.CombinedOutput(); err != nil {
		t.Fatalf("prlimit: %v: %s", err, out)
	}
	first := s.auditor(t, 0)
	if err := syscall.Kill(first, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	s.auditor(t, first)
	l := startLoad(t, s, 2)
	conn := s.connect(t)
	crashes := 0
	crash := func() string {
		crashes++
		return "SELECT count(*) FROM people WHERE id <> " + strings.Repeat("abs(", 900) + itoa(crashes) + strings.Repeat(")", 900)
	}
	for range 20 {
		var n int
		if err := conn.QueryRow(t.Context(), crash(), pgx.QueryExecModeSimpleProtocol).Scan(&n); err != nil {
			t.Fatal(err)
		}
	}
	l.more(t, s, 200)
	s.until(t, "the statement is set aside", func() bool {
		if _, err := conn.Exec(t.Context(), crash(), pgx.QueryExecModeSimpleProtocol); err != nil {
			t.Fatal(err)
		}
		return s.metric(t, "dpwatch_statements_set_aside_total") > 3
	})
	if starts := s.metric(t, "dpwatch_auditor_starts_total"); starts < 3 || starts > 6 {
		t.Errorf("the auditor was started %d times: want two, one for the crash, and no more for the statement set aside", starts)
	}
	l.wait()
	heard := s.status(t).Audit.Captured
	s.until(t, "the auditor goes on with the others", func() bool {
		exec0(t, conn, "SELECT count(*) FROM people")
		return s.status(t).Audit.Captured > heard
	})
}
