package supervise_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/eventually"
	"github.com/dpwatch/dpwatch/internal/leaktest"
	"github.com/dpwatch/dpwatch/internal/link"
	"github.com/dpwatch/dpwatch/internal/sqltext"
	"github.com/dpwatch/dpwatch/internal/supervise"
)

// TestMain is also the child: a real process that answers each query with a status frame, and misbehaves on demand.
func TestMain(m *testing.M) {
	if os.Getenv("SUPERVISE_TEST_CHILD") == "1" {
		if err := child(); err != nil {
			os.Stderr.WriteString(err.Error() + "\n")
			os.Exit(1)
		}
		os.Exit(0)
	}
	code := m.Run()
	if leak := leaktest.Find(); leak != nil && code == 0 {
		os.Stderr.WriteString(leak.Error() + "\n")
		code = 1
	}
	os.Exit(code)
}

func child() error {
	conn, err := net.FileConn(os.NewFile(supervise.LinkFD, "link"))
	if err != nil {
		return err
	}
	in, out := link.NewReader(conn), link.NewWriter(conn)
	_, hello, err := in.Next()
	if err != nil {
		return err
	}
	var settled capture.Settled
	for {
		kind, payload, err := in.Next()
		if errors.Is(err, io.EOF) {
			return out.Send(link.Status, []byte(`"finished"`))
		}
		if err != nil {
			return err
		}
		if kind == link.Counts {
			if err := out.Send(link.Status, payload); err != nil {
				return err
			}
			var statements map[string]uint64
			if err := json.Unmarshal(payload, &statements); err != nil {
				return err
			}
			for _, n := range statements {
				settled.Counted += n
			}
			if os.Getenv("SUPERVISE_TEST_FORGETS") == "1" {
				continue
			}
			if err := out.Send(link.Settled, settled.AppendBinary(nil)); err != nil {
				return err
			}
			continue
		}
		q, err := capture.DecodeBinary(payload)
		if err != nil {
			return err
		}
		hash := sqltext.Shape(q.SQL)
		if err := out.Send(link.Begin, hash[:]); err != nil {
			return err
		}
		switch q.SQL {
		case "crash with another": // as if a worker parsed another statement at the same time
			other := sqltext.Shape("another")
			if err := out.Send(link.Begin, other[:]); err != nil {
				return err
			}
			fallthrough
		case "crash":
			_ = syscall.Kill(os.Getpid(), syscall.SIGSEGV)
			time.Sleep(time.Minute)
		case "hang":
			time.Sleep(time.Minute)
		case "rest 1": // longer than ParseTimeout, but without CPU time
			time.Sleep(2 * time.Second)
		case "spin 1", "spin 2":
			for begun := time.Now(); time.Since(begun) < 5*time.Minute; {
			}
		}
		if err := out.Send(link.End, hash[:]); err != nil {
			return err
		}
		status, _ := json.Marshal(map[string]string{"sql": q.SQL, "hello": string(hello)})
		if err := out.Send(link.Status, status); err != nil {
			return err
		}
		settled.Queries++
		if q.SQL == "forget" { // the child has no lasting record of this one
			settled.Queries--
		}
		if err := out.Send(link.Settled, settled.AppendBinary(nil)); err != nil {
			return err
		}
	}
}

// rig is a supervisor with a real child, and the status frames of the child.
type rig struct {
	*supervise.Supervisor
	queue *capture.Queue
	stop  context.CancelFunc
	done  chan struct{}
	mu    sync.Mutex
	said  []string
}

func start(t *testing.T, hang time.Duration) *rig {
	t.Helper()
	return startLimited(t, hang, 0)
}

func startLimited(t *testing.T, hang, parse time.Duration) *rig {
	t.Helper()
	r := &rig{queue: capture.NewQueue(100, 1<<20), done: make(chan struct{})}
	r.Supervisor = supervise.New(supervise.Options{
		Command: func() *exec.Cmd {
			cmd := exec.Command(os.Args[0], "-test.run=^$")
			cmd.Env = append(os.Environ(), "SUPERVISE_TEST_CHILD=1")
			cmd.Stderr = os.Stderr
			return cmd
		},
		Hello: []byte("good day"), Queue: r.queue, HangLimit: hang, ParseTimeout: parse, StopGrace: 5 * time.Minute, Logger: zap.NewNop(),
		OnStatus: func(s []byte) {
			r.mu.Lock()
			r.said = append(r.said, string(s))
			r.mu.Unlock()
		},
	})
	ctx, stop := context.WithCancel(context.Background())
	r.stop = stop
	go func() {
		defer close(r.done)
		if err := r.Run(ctx); err != nil {
			t.Error(err)
		}
	}()
	t.Cleanup(func() { stop(); <-r.done })
	return r
}

func (r *rig) saw(status string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.said {
		if s == status {
			return true
		}
	}
	return false
}

func answer(sql string) string { return `{"hello":"good day","sql":"` + sql + `"}` }

func TestQueriesReachTheChild(t *testing.T) {
	t.Parallel()
	r := start(t, time.Minute)
	r.queue.Offer(capture.Query{SQL: "one"})
	r.queue.Offer(capture.Query{SQL: "two"})
	eventually.True(t, "both answered", func() bool { return r.saw(answer("one")) && r.saw(answer("two")) })
	r.stop()
	<-r.done
	if !r.saw(`"finished"`) {
		t.Error("the child was not let finish")
	}
	if s := r.Stats(); s.QueriesSent != 2 || s.Starts != 1 || s.PID != 0 {
		t.Errorf("stats %+v; want 2 sent, 1 start, no child left", s)
	}
}

func TestKilledChildComesBack(t *testing.T) {
	t.Parallel()
	r := start(t, time.Minute)
	r.queue.Offer(capture.Query{SQL: "before"})
	eventually.True(t, "answered", func() bool { return r.saw(answer("before")) })
	if err := syscall.Kill(r.Stats().PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "a second child", func() bool { s := r.Stats(); return s.Starts == 2 && s.PID != 0 })
	r.queue.Offer(capture.Query{SQL: "after"})
	eventually.True(t, "answered again", func() bool { return r.saw(answer("after")) })
}

// TestLost: the queries are lost of which a child that ended had no lasting record.
func TestLost(t *testing.T) {
	t.Parallel()
	r := start(t, time.Minute)
	for _, sql := range []string{"one", "forget", "two", "forget"} {
		r.queue.Offer(capture.Query{SQL: sql})
	}
	eventually.True(t, "answered", func() bool { return r.saw(answer("two")) && r.Stats().QueriesSent == 4 })
	time.Sleep(200 * time.Millisecond) // the last report is on its way
	if err := syscall.Kill(r.Stats().PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "two are lost", func() bool { return r.Stats().QueriesLost == 2 }, func() any { return r.Stats() })
	r.stop()
	<-r.done
	if n := r.Stats().QueriesLost; n != 2 {
		t.Errorf("%d queries are lost, want 2", n)
	}
}

func TestStatementThatCrashesIsSetAside(t *testing.T) {
	t.Parallel()
	r := start(t, time.Minute)
	r.queue.Offer(capture.Query{SQL: "crash"})
	eventually.True(t, "the crash", func() bool { return r.Stats().Starts >= 2 })
	r.queue.Offer(capture.Query{SQL: "crash"})
	r.queue.Offer(capture.Query{SQL: "fine"})
	eventually.True(t, "the next statement", func() bool { return r.saw(answer("fine")) })
	if s := r.Stats(); s.SetAside != 1 || s.Starts != 2 {
		t.Errorf("stats %+v; want the statement set aside once and no further crash", s)
	}
}

// It is unknown which of the two statements ended the child: both are set aside.
func TestBothStatementsAreSetAside(t *testing.T) {
	t.Parallel()
	r := start(t, time.Minute)
	r.queue.Offer(capture.Query{SQL: "crash with another"})
	eventually.True(t, "the crash", func() bool { return r.Stats().Starts >= 2 })
	for _, sql := range []string{"crash with another", "another", "fine"} {
		r.queue.Offer(capture.Query{SQL: sql})
	}
	eventually.True(t, "the next statement", func() bool { return r.saw(answer("fine")) })
	if s := r.Stats(); s.SetAside != 2 || s.Starts != 2 || r.saw(answer("another")) {
		t.Errorf("stats %+v; want both statements set aside and no further crash", s)
	}
}

// A statement that keeps the parser busy is stopped long before HangLimit, and other statements of its shape are not
// sent again. A statement that only waits for a processor, as on a busy machine, is not stopped.
func TestLongParseIsStopped(t *testing.T) {
	t.Parallel()
	r := startLimited(t, time.Hour, time.Second)
	r.queue.Offer(capture.Query{SQL: "rest 1"})
	eventually.True(t, "the statement that rests is answered", func() bool { return r.saw(answer("rest 1")) })
	if s := r.Stats(); s.Starts != 1 {
		t.Errorf("%d starts after a statement that rests, want 1", s.Starts)
	}
	r.queue.Offer(capture.Query{SQL: "spin 1"})
	eventually.True(t, "the child is ended", func() bool { return r.Stats().Starts >= 2 })
	r.queue.Offer(capture.Query{SQL: "spin 2"})
	r.queue.Offer(capture.Query{SQL: "fine"})
	eventually.True(t, "the next statement", func() bool { return r.saw(answer("fine")) })
	if s := r.Stats(); s.SetAside != 1 || s.Starts != 2 {
		t.Errorf("stats %+v; want the shape set aside after one start", s)
	}
}

func TestHangingChildIsKilled(t *testing.T) {
	t.Parallel()
	r := start(t, 1500*time.Millisecond)
	// A child that starts slowly or is idle is killed as well, with the queries sent to it.
	eventually.True(t, "the hanging statement is set aside", func() bool {
		r.queue.Offer(capture.Query{SQL: "hang"})
		return r.Stats().SetAside > 0
	})
	starts := r.Stats().Starts
	if starts < 2 {
		t.Errorf("set aside after %d starts", starts)
	}
	eventually.True(t, "the next statement", func() bool {
		r.queue.Offer(capture.Query{SQL: "fine"})
		return r.saw(answer("fine"))
	})
}

// A stopped child only fills the queue: Offer never waits.
func TestStoppedChildBlocksNobody(t *testing.T) {
	t.Parallel()
	r := start(t, time.Minute)
	r.queue.Offer(capture.Query{SQL: "one"})
	eventually.True(t, "answered", func() bool { return r.saw(answer("one")) })
	pid := r.Stats().PID
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	big := string(make([]byte, 4<<10))
	for range 2000 {
		r.queue.Offer(capture.Query{SQL: big})
	}
	if s := r.queue.Stats(); s.Dropped == 0 {
		t.Errorf("queue %+v: 8 MB went into a stopped child", s)
	}
	if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	r.stop()
	<-r.done
}

func TestChildThatCannotStart(t *testing.T) {
	t.Parallel()
	s := supervise.New(supervise.Options{
		Command: func() *exec.Cmd { return exec.Command("/nonexistent/dpwatch") },
		Queue:   capture.NewQueue(1, 0), HangLimit: time.Minute, Logger: zap.NewNop(),
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	eventually.True(t, "it is tried again", func() bool { return s.Stats().Starts >= 2 })
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("Run: %v; a child that cannot start must not end the relay", err)
	}
}
