package ledger_test

import (
	"bufio"
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"
	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/internal/eventually"
	"github.com/dpwatch/dpwatch/internal/ledger"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
)

const childVariable = "DPWATCH_LEDGER_TEST_CHILD"

func TestMain(m *testing.M) {
	if role, dsn, found := strings.Cut(os.Getenv(childVariable), " "); found {
		child(role, dsn)
	}
	pgtest.Main(m)
}

// child is a process that takes a job of engine "e", prints a line, and never ends the job.
func child(role, dsn string) {
	l, err := ledger.Open(context.Background(), ledger.Options{DSN: dsn, Connections: 4})
	if err != nil {
		panic(err)
	}
	hold := func() {
		fmt.Println("taken")
		select {}
	}
	if role == "alert" {
		err = l.Alerts.Deliver(context.Background(), ledger.DeliverOptions{Engine: "e", Slots: 1, Logger: zap.NewNop(), Send: func(context.Context, ledger.Delivery) error {
			hold()
			return nil
		}})
	} else {
		o := workOptions("child", "e", func(context.Context, *ledger.Turn) error {
			hold()
			return nil
		})
		err = l.Workers.Work(context.Background(), o)
	}
	panic(err)
}

// startChild starts a child and returns when it has taken a job. kill kills it with SIGKILL, and waits until its
// sessions have ended.
func startChild(t *testing.T, role, dsn string) (kill func()) {
	t.Helper()
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), childVariable+"="+role+" "+dsn)
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	kill = sync.OnceFunc(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	t.Cleanup(kill)
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatalf("the child printed %q: %v", line, err)
	}
	return kill
}

// queue reads the jobs of a ledger in the default schema.
type queue struct{ *river.Client[pgx.Tx] }

func newQueue(t *testing.T, dsn string) queue {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{Schema: ledger.DefaultSchema})
	if err != nil {
		t.Fatal(err)
	}
	return queue{client}
}

// jobs returns the jobs of a kind, the earliest first.
func (q queue) jobs(t *testing.T, kind string) []*rivertype.JobRow {
	t.Helper()
	all, err := q.JobList(t.Context(), river.NewJobListParams().Kinds(kind).OrderBy(river.JobListOrderByID, river.SortOrderAsc))
	if err != nil {
		t.Fatal(err)
	}
	return all.Jobs
}

// states returns the states of the jobs of a kind.
func (q queue) states(t *testing.T, kind string) string {
	t.Helper()
	var states []string
	for _, job := range q.jobs(t, kind) {
		states = append(states, string(job.State))
	}
	return strings.Join(states, " ")
}

// TestLeader: the job of a process that was killed is ended by the leader, which may be a client of the other kind of
// jobs. A turn is lost then; a message is sent again.
func TestLeader(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"turn", "alert"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t)
			p := &post{Ledger: f.open(t), dsn: f.dsn}
			f.give(t, "k")
			p.save(t, "a", "{}")
			startChild(t, kind, f.dsn)() // it may have been the leader
			if s := f.queue.states(t, kind); s != "running" {
				t.Fatalf("%s after the death of its process, want running", s)
			}
			time.Sleep(50 * time.Millisecond)
			leader := f.open(t)
			leader.Times(time.Millisecond, 20*time.Millisecond)
			if kind == "turn" {
				ctx, stop := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() {
					done <- leader.Alerts.Deliver(ctx, ledger.DeliverOptions{Engine: "another", Slots: 1, Logger: zap.NewNop()})
				}()
				defer func() {
					stop()
					if err := <-done; err != nil {
						t.Error(err)
					}
				}()
				eventually.True(t, "the turn is lost", func() bool { return f.turn(t).Lost }, func() any { return f.queue.states(t, kind) })
				if s := f.queue.states(t, kind); s != "discarded" {
					t.Errorf("the job is %s, want discarded", s)
				}
				return
			}
			f.work(t, leader, "leader", "another", nil)
			eventually.True(t, "the message can be sent again", func() bool {
				s := f.queue.states(t, kind)
				return s == "retryable" || s == "available"
			}, func() any { return f.queue.states(t, kind) })
		})
	}
}

// TestNoTableOfRiver: River alone reads and writes its tables. Their names are in no SQL of this repository.
func TestNoTableOfRiver(t *testing.T) {
	t.Parallel()
	table := regexp.MustCompile(`(?i)\briver` + `_[a-z]`)
	files := 0
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".go" && filepath.Ext(path) != ".sql" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		files++
		for i, line := range strings.Split(string(text), "\n") {
			if table.MatchString(line) {
				t.Errorf("%s:%d names a table of River: %s", path, i+1, strings.TrimSpace(line))
			}
		}
		return nil
	})
	if err != nil || files < 100 {
		t.Errorf("%d files were read: %v", files, err)
	}
}
