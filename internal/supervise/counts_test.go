package supervise_test

import (
	"context"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/eventually"
	"github.com/dpwatch/dpwatch/internal/supervise"
)

// The children together receive every number once: while they run, after a restart, and at the end.
func TestUncaptured(t *testing.T) {
	t.Parallel()
	r, many, end := startCounting(t)
	many.Store(3)
	eventually.True(t, "the first number", func() bool { return r.saw(`{"too_long":3}`) })
	time.Sleep(200 * time.Millisecond) // the child's record of it is on its way
	if err := syscall.Kill(r.Stats().PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "a second child", func() bool { s := r.Stats(); return s.Starts == 2 && s.PID != 0 })
	many.Store(10)
	eventually.True(t, "the difference", func() bool { return r.saw(`{"too_long":7}`) })
	r.queue.Offer(capture.Query{SQL: "fine"})
	eventually.True(t, "the child is served", func() bool { return r.saw(`{"hello":"","sql":"fine"}`) })
	many.Store(12)
	end()
	if !r.saw(`{"too_long":2}`) || !r.saw(`"finished"`) {
		t.Errorf("the last number is missing: %q", r.said)
	}
}

// TestCountsOfAKilledChild: a number of which a child that was killed had no lasting record goes to the next one.
func TestCountsOfAKilledChild(t *testing.T) {
	t.Parallel()
	r, many, _ := startCounting(t, "SUPERVISE_TEST_FORGETS=1")
	many.Store(3)
	eventually.True(t, "the first number", func() bool { return r.saw(`{"too_long":3}`) })
	many.Store(8)
	eventually.True(t, "the difference", func() bool { return r.saw(`{"too_long":5}`) })
	if err := syscall.Kill(r.Stats().PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "both again", func() bool { return r.saw(`{"too_long":8}`) })
}

// startCounting starts a supervisor with a number of statements that were not captured. The function ends it.
func startCounting(t *testing.T, environ ...string) (r *rig, many *atomic.Uint64, end func()) {
	t.Helper()
	many = new(atomic.Uint64)
	r = &rig{queue: capture.NewQueue(100, 1<<20)}
	r.Supervisor = supervise.New(supervise.Options{
		Command: func() *exec.Cmd {
			cmd := exec.Command(os.Args[0], "-test.run=^$")
			cmd.Env = append(append(os.Environ(), "SUPERVISE_TEST_CHILD=1"), environ...)
			return cmd
		},
		Queue: r.queue, HangLimit: time.Hour, StopGrace: 5 * time.Minute, Logger: zap.NewNop(),
		Uncaptured: func() map[string]uint64 { return map[string]uint64{"too_long": many.Load(), "none": 0} },
		OnStatus: func(s []byte) {
			r.mu.Lock()
			r.said = append(r.said, string(s))
			r.mu.Unlock()
		},
	})
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = r.Run(ctx) })
	end = func() {
		stop()
		running.Wait()
	}
	t.Cleanup(end)
	return r, many, end
}
