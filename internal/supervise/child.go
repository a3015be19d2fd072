package supervise

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/link"
	"github.com/dpwatch/dpwatch/internal/sqltext"
)

// once runs one child from start to exit.
func (s *Supervisor) once(ctx context.Context) error {
	near, far, err := socketPair()
	if err != nil {
		return err
	}
	defer near.Close() //nolint:errcheck // it may be closed already
	cmd := s.opt.Command()
	cmd.ExtraFiles = []*os.File{far}
	// Its own process group: Ctrl-C reaches the relay first. The child exits when the link closes, even if the relay is
	// killed.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	err = cmd.Start()
	_ = far.Close()
	if err != nil {
		return fmt.Errorf("start the auditor: %w", err)
	}
	lowerPriority(cmd.Process.Pid)
	s.since.Store(time.Now().UnixNano())
	s.pid.Store(int64(cmd.Process.Pid))
	s.heard.Store(time.Now().UnixNano())
	defer s.pid.Store(0)

	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()
	c := &child{s: s, conn: near, pid: cmd.Process.Pid}
	exitErr := c.talk(ctx, exited, cmd.Process)
	s.lost.Add(c.unsettled())
	c.uncount()
	if ctx.Err() == nil {
		for _, hash := range c.parsing.all() {
			s.strikes.died(hash, killed(cmd.ProcessState) && !c.hung)
			s.opt.Logger.Warn("the auditor ended while it parsed a statement",
				zap.String("statement_shape", fmt.Sprintf("%x", hash[:8])), zap.Bool("set_aside", s.strikes.out(hash)))
		}
	}
	if exitErr != nil {
		return fmt.Errorf("process %d: %w", cmd.Process.Pid, exitErr)
	}
	return nil
}

// child is the relay's end of the link to one child.
type child struct {
	s      *Supervisor
	conn   *net.UnixConn
	pid    int
	batch  link.Batch // used by feed only
	handed uint64     // queries that were taken for the child; used by feed, and when the child has ended
	// Under Supervisor.counted.mu, or when the child has ended:
	settled capture.Settled // what the child has reported to have a lasting record
	frames  []countsFrame   // Counts that were sent, and are not among it
	counted uint64          // statements in all frames of Counts
	parsing parsing
	hung    bool // watch killed it
	// now counts the seconds that watch has seen pass; heard is its value at the child's last frame. So time in which
	// this process itself did not run (stopped, starved), or a change of the clock, does not count as silence of the
	// child.
	now, heard atomic.Int64
}

// talk exchanges frames with the child until it exits, hangs, or ctx has ended and StopGrace is over.
func (c *child) talk(ctx context.Context, exited <-chan error, process *os.Process) error {
	feedCtx, stopFeed := context.WithCancel(ctx)
	defer stopFeed()
	var group errgroup.Group
	var greeted atomic.Bool // Hello is sent
	w := link.NewWriter(c.conn)
	group.Go(func() error {
		if w.Send(link.Hello, *c.s.hello.Load()) == nil {
			greeted.Store(true)
			group.Go(func() error { c.pause(feedCtx, w); return nil })
			group.Go(func() error { c.counts(feedCtx, w); return nil })
			c.feed(feedCtx, w)
		}
		return nil
	})
	group.Go(func() error { c.listen(); return nil })
	exitErr := c.watch(ctx, exited, process, func() {
		if greeted.Load() {
			_ = c.conn.SetWriteDeadline(time.Now().Add(time.Second)) // a child that reads nothing must not delay the end
			_ = c.sendCounts(w)
		}
	})
	stopFeed()
	_ = c.conn.SetWriteDeadline(time.Now()) // for a feed that is blocked in a write
	_ = group.Wait()
	return exitErr
}

// watch waits until the child has exited. It kills a child that hangs. When ctx ends it calls last and lets the child
// finish.
func (c *child) watch(ctx context.Context, exited <-chan error, process *os.Process, last func()) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	often := time.NewTicker(parseCheck)
	defer often.Stop()
	kill := func(why string, after time.Duration) error {
		c.s.opt.Logger.Warn(why, zap.Duration("after", after))
		c.hung = true
		_ = process.Kill()
		return <-exited
	}
	for {
		select {
		case err := <-exited:
			if err == nil {
				return errors.New("exited with status 0")
			}
			return err
		case <-tick.C:
			now := c.now.Add(1)
			quiet := time.Duration(max(now-c.heard.Load(), c.parsing.longest(now))) * time.Second
			if quiet > c.s.opt.HangLimit {
				return kill("auditor process hangs; killing it", quiet)
			}
		case <-often.C:
			limit := c.s.opt.ParseTimeout
			if spent := c.parsing.spent(func() (time.Duration, bool) { return cpuTime(c.pid) }); limit > 0 && spent > limit {
				return kill("auditor process exceeded its time limit while it parsed a statement; killing it", spent)
			}
		case <-ctx.Done():
			last()
			_ = c.conn.CloseWrite() // end of file makes the child finish
			select {
			case err := <-exited:
				return err
			case <-time.After(c.s.opt.StopGrace):
				_ = process.Kill()
				return <-exited
			}
		}
	}
}

// feed moves queries from the queue to the child until ctx ends or the link breaks.
func (c *child) feed(ctx context.Context, w *link.Writer) {
	queries := make([]capture.Query, 0, batchQueries)
	pause := time.NewTimer(0)
	defer pause.Stop()
	<-pause.C
	for {
		first, err := c.s.opt.Queue.Take(ctx)
		if err != nil {
			return
		}
		queries = append(queries[:0], first)
		pause.Reset(batchPause)
		select { // batch the next ones: no wakeup for each query
		case <-pause.C:
		case <-ctx.Done():
		}
		for left := c.s.batchLimit(); left > 0; {
			queries = c.s.opt.Queue.TakeAll(queries, min(left, batchQueries)-len(queries))
			if len(queries) == 0 {
				break
			}
			left -= len(queries)
			if err := c.send(w, queries); err != nil {
				return
			}
			clear(queries)
			queries = queries[:0]
		}
	}
}

// pause sends every change of the paused state and of the label to the child until ctx ends or the link breaks.
func (c *child) pause(ctx context.Context, w *link.Writer) {
	var label *string
	for sent := false; ; {
		if now := c.s.label.Load(); now != label {
			if w.Send(link.Deploy, []byte(*now)) != nil {
				return
			}
			label = now
		}
		if now := c.s.paused.Load(); now != sent {
			payload := []byte{0}
			if now {
				payload[0] = 1
			}
			if w.Send(link.Pause, payload) != nil {
				return
			}
			sent = now
		}
		select {
		case <-ctx.Done():
			return
		case <-c.s.turned:
		}
	}
}

// batchLimit returns the number of queries that may be sent after one batchPause.
func (s *Supervisor) batchLimit() int {
	if s.opt.MaxRate == 0 {
		return math.MaxInt
	}
	return max(1, int(int64(s.opt.MaxRate)*int64(batchPause)/int64(time.Second)))
}

// Queries are sent to the child in batches: after a pause, in writes of about batchBytes. A system call and a process
// wakeup for each query would cost more than everything else in capture.
const (
	batchPause   = 50 * time.Millisecond
	batchQueries = 256
	batchBytes   = 64 << 10
)

// unsettled returns how many queries the child was given without a report of a lasting record. The child has ended.
func (c *child) unsettled() uint64 { return c.handed - min(c.handed, c.settled.Queries) }

// send sends the queries, except those whose shape is set aside.
func (c *child) send(w *link.Writer, queries []capture.Query) error {
	waiting := uint64(0) // in the batch
	flush := func() error {
		if err := w.SendBatch(&c.batch); err != nil {
			return err
		}
		c.s.sent.Add(waiting)
		waiting = 0
		return nil
	}
	for i := range queries {
		q := &queries[i]
		if c.s.strikes.any() && c.s.strikes.out(sqltext.Shape(q.SQL)) {
			c.s.aside.Add(1)
			continue
		}
		if !c.batch.Add(link.Query, func(b []byte) []byte { return capture.AppendBinary(b, *q) }) {
			c.s.lost.Add(1)
			continue
		}
		waiting++
		c.handed++
		if c.batch.Len() < batchBytes {
			continue
		}
		if err := flush(); err != nil {
			c.handed += uint64(len(queries) - i - 1)
			return err
		}
	}
	return flush()
}

// listenPause is the delay between reads of the child's frames: it sends two for each statement, and none is urgent.
// Frames of a child that has died can still be read afterwards.
const listenPause = 50 * time.Millisecond

// listen reads the child's frames until the link ends.
func (c *child) listen() {
	r := link.NewReader(c.conn)
	for {
		kind, payload, err := r.Next()
		if err != nil {
			return
		}
		c.s.heard.Store(time.Now().UnixNano())
		now := c.now.Load()
		c.heard.Store(now)
		switch kind {
		case link.Begin:
			c.parsing.begin(payload, now)
		case link.End:
			c.parsing.end(payload)
		case link.Status:
			c.s.status.Store(&payload)
			c.s.opt.OnStatus(payload)
		case link.Names:
			c.s.opt.OnNames(payload)
		case link.Metrics:
			c.s.metrics.Store(&payload)
		case link.Settled:
			if s, ok := capture.DecodeSettled(payload); ok {
				c.s.counted.mu.Lock()
				c.settled.Queries, c.settled.Counted = max(c.settled.Queries, s.Queries), max(c.settled.Counted, s.Counted)
				c.s.counted.mu.Unlock()
			}
		}
		if !r.Buffered() {
			time.Sleep(listenPause)
		}
	}
}

// socketPair returns the two ends: a connection for this process and a file for the child.
func socketPair() (*net.UnixConn, *os.File, error) {
	syscall.ForkLock.RLock()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(fds[0])
		syscall.CloseOnExec(fds[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, nil, fmt.Errorf("socket pair for the auditor: %w", err)
	}
	near, far := os.NewFile(uintptr(fds[0]), "auditor"), os.NewFile(uintptr(fds[1]), "relay")
	conn, err := net.FileConn(near)
	_ = near.Close()
	if err != nil {
		_ = far.Close()
		return nil, nil, fmt.Errorf("socket pair for the auditor: %w", err)
	}
	return conn.(*net.UnixConn), far, nil
}

// killed reports whether the process was ended by SIGKILL or SIGTERM, which come from outside.
func killed(state *os.ProcessState) bool {
	if state == nil {
		return false
	}
	status, ok := state.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && (status.Signal() == syscall.SIGKILL || status.Signal() == syscall.SIGTERM)
}

// lowerPriority raises the child's nice value, so that it yields the processor to the relay and the engine. Best
// effort.
func lowerPriority(pid int) { _ = syscall.Setpriority(syscall.PRIO_PROCESS, pid, 10) }
