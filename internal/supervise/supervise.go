// Package supervise keeps the auditor process running: it starts the child, sends it captured queries, restarts it when
// it dies or hangs, and sets aside the statement that it was parsing then.
//
// It owns the child's life cycle and the relay's end of the link. It cannot affect client sessions: it shares only the
// bounded queue with the proxy, and that drops and counts when the child is slow or not running. In: capture.Query
// values from the queue. Out: the child's latest status and metrics, as bytes.
package supervise

import (
	"context"
	"os/exec"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"
	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/internal/capture"
)

// Options configures a Supervisor.
type Options struct {
	// Command returns the child's command. The Supervisor adds the link as file descriptor 3.
	Command   func() *exec.Cmd
	Hello     []byte // payload of the first frame
	Queue     *capture.Queue
	HangLimit time.Duration // silence after which the child is killed, counted in seconds; a child reports every 500 ms
	// ParseTimeout limits the CPU time that the child uses while it parses one statement; the child is then killed.
	// Waiting for a busy machine does not count here, but it does for HangLimit. 0 = only HangLimit applies.
	ParseTimeout time.Duration
	StopGrace    time.Duration // how long the child may take to finish after Run's context ends
	// MaxRate limits the queries per second that the child receives; the rest stay in the queue, which drops and
	// counts. 0 = no limit.
	MaxRate  int
	Logger   *zap.Logger
	OnStatus func([]byte) // called with every Status payload; may be nil
	OnNames  func([]byte) // called with every Names payload; may be nil
	// Uncaptured returns the statements that were not sent to a child since the start, by reason; the child receives
	// the differences. It may be nil.
	Uncaptured func() map[string]uint64
	// Samples are a few of these statements; the child receives them. It may be nil.
	Samples *capture.Samples
}

// Stats holds the counters since the start.
type Stats struct {
	PID         int       `json:"pid"`            // of the child; 0 if it is not running
	Starts      uint64    `json:"starts"`         // of the child, including the first
	Since       time.Time `json:"since,omitzero"` // start of the running child
	QueriesSent uint64    `json:"queries_sent"`
	// QueriesLost were taken from the queue, and a child ended before it reported a lasting record of them; a few of
	// them may have one. Also those of which a frame was too long.
	QueriesLost  uint64        `json:"queries_lost"`
	SetAside     uint64        `json:"set_aside"` // not sent because a child ended while it parsed a statement of this shape
	LastHeardAgo time.Duration `json:"last_heard_ago_ns"`
}

// Supervisor runs the auditor process.
type Supervisor struct {
	opt     Options
	pid     atomic.Int64
	starts  atomic.Uint64
	since   atomic.Int64 // unix nanoseconds
	sent    atomic.Uint64
	lost    atomic.Uint64
	aside   atomic.Uint64
	heard   atomic.Int64 // unix nanoseconds
	status  atomic.Pointer[[]byte]
	metrics atomic.Pointer[[]byte]
	strikes strikes
	paused  atomic.Bool
	label   atomic.Pointer[string]             // of the engine's last deploy; nil = none was posted
	turned  chan struct{}                      // signals a change of paused or label; capacity 1
	hello   atomic.Pointer[[]byte]             // the payload of the next first frame
	end     atomic.Pointer[context.CancelFunc] // ends the running child; nil before the first
	counted counted
}

// New returns a Supervisor; Run starts the child.
func New(opt Options) *Supervisor {
	if opt.OnStatus == nil {
		opt.OnStatus = func([]byte) {}
	}
	if opt.OnNames == nil {
		opt.OnNames = func([]byte) {}
	}
	s := &Supervisor{opt: opt, strikes: strikes{count: map[[32]byte]int{}}, turned: make(chan struct{}, 1)}
	s.hello.Store(&opt.Hello)
	return s
}

// Renew ends the child as at the end of Run, and starts another one with a new payload of the first frame.
func (s *Supervisor) Renew(hello []byte) {
	s.hello.Store(&hello)
	if end := s.end.Load(); end != nil {
		(*end)()
	}
}

// healthyAfter is the lifetime of a child after which the restart backoff is reset.
const healthyAfter = time.Minute

// Run keeps a child running until ctx ends, then lets it finish for StopGrace. It returns nil: a failed start is logged
// and retried, because traffic must not end because of it.
func (s *Supervisor) Run(ctx context.Context) error {
	pause := backoff.NewExponentialBackOff()
	pause.InitialInterval = 100 * time.Millisecond
	pause.MaxInterval = 30 * time.Second
	for ctx.Err() == nil {
		began := time.Now()
		s.starts.Add(1)
		child, end := context.WithCancel(ctx)
		s.end.Store(&end)
		err := s.once(child)
		renewed := child.Err() != nil
		end()
		if ctx.Err() != nil {
			return nil
		}
		if renewed {
			s.opt.Logger.Info("auditor process ended; traffic is not affected; starting it with the new configuration")
			continue
		}
		if time.Since(began) > healthyAfter {
			pause.Reset()
		}
		wait := pause.NextBackOff()
		s.opt.Logger.Warn("auditor process ended; traffic is not affected; restarting it", zap.Error(err), zap.Duration("in", wait))
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
	return nil
}

// Pause makes the child pause or resume replays. It also applies to children started later.
func (s *Supervisor) Pause(paused bool) {
	s.paused.Store(paused)
	s.turn()
}

// Deploy reports to the child that another version of the engine was deployed, under a label. It also applies to
// children started later.
func (s *Supervisor) Deploy(label string) {
	s.label.Store(&label)
	s.turn()
}

func (s *Supervisor) turn() {
	select {
	case s.turned <- struct{}{}:
	default:
	}
}

// Paused reports the state set by the last Pause.
func (s *Supervisor) Paused() bool { return s.paused.Load() }

// Status returns the child's latest status frame; nil before the first.
func (s *Supervisor) Status() []byte { return deref(s.status.Load()) }

// Metrics returns the child's latest metrics frame; nil before the first.
func (s *Supervisor) Metrics() []byte { return deref(s.metrics.Load()) }

func deref(p *[]byte) []byte {
	if p == nil {
		return nil
	}
	return *p
}

// Stats returns the counters.
func (s *Supervisor) Stats() Stats {
	stats := Stats{
		PID: int(s.pid.Load()), Starts: s.starts.Load(), QueriesSent: s.sent.Load(),
		QueriesLost: s.lost.Load(), SetAside: s.aside.Load(),
	}
	if since := s.since.Load(); stats.PID != 0 && since != 0 {
		stats.Since = time.Unix(0, since)
	}
	if heard := s.heard.Load(); heard != 0 {
		stats.LastHeardAgo = time.Since(time.Unix(0, heard))
	}
	return stats
}

// LinkFD is the file descriptor of the link in the child.
const LinkFD = 3

// strikes counts the shapes (sqltext.Shape) of the statements that were being parsed when a child died: the same
// statement with other constants would end the next child as well.
type strikes struct {
	mu    sync.Mutex // guards the fields below
	count map[[32]byte]int
}

// maxStrikes bounds the memory of set-aside statements.
const maxStrikes = 10_000

// died records that a child ended while it parsed the statement. A crash or a hang sets it aside immediately; a kill
// from outside may be a coincidence and counts half.
func (s *strikes) died(hash [32]byte, fromOutside bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.count) >= maxStrikes {
		clear(s.count)
	}
	if fromOutside {
		s.count[hash]++
		return
	}
	s.count[hash] += 2
}

// any reports whether any statement has a strike.
func (s *strikes) any() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.count) > 0
}

func (s *strikes) out(hash [32]byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.count[hash] >= 2
}
