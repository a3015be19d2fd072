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
	var many atomic.Uint64
	r := &rig{queue: capture.NewQueue(100, 1<<20)}
	r.Supervisor = supervise.New(supervise.Options{
		Command: func() *exec.Cmd {
			cmd := exec.Command(os.Args[0], "-test.run=^$")
			cmd.Env = append(os.Environ(), "SUPERVISE_TEST_CHILD=1")
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
	ctx, stop := context.WithCancel(t.Context())
	var end sync.WaitGroup
	end.Go(func() { _ = r.Run(ctx) })
	defer end.Wait()
	defer stop()
	many.Store(3)
	eventually.True(t, "the first number", func() bool { return r.saw(`{"too_long":3}`) })
	if err := syscall.Kill(r.Stats().PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	// A number that is sent while a child ends is lost with it.
	eventually.True(t, "a second child", func() bool { s := r.Stats(); return s.Starts == 2 && s.PID != 0 })
	many.Store(10)
	eventually.True(t, "the difference", func() bool { return r.saw(`{"too_long":7}`) })
	r.queue.Offer(capture.Query{SQL: "fine"})
	eventually.True(t, "the child is served", func() bool { return r.saw(`{"hello":"","sql":"fine"}`) })
	many.Store(12)
	stop()
	end.Wait()
	if !r.saw(`{"too_long":2}`) || !r.saw(`"finished"`) {
		t.Errorf("the last number is missing: %q", r.said)
	}
}
