package tap

import (
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/proxy/internal/tracker"
)

// Drainer is the one goroutine that takes the taps' records and runs the trackers. No message wakes it. It polls its
// list of sessions every interval, less often while the list is empty, and earlier only when a tap is half full.
type Drainer struct {
	opts     Options
	log      *zap.Logger
	records  recordPool
	wake     chan struct{} // holds a token when a tap fills faster than the interval
	frontend *[256]byte    // how to record the client's messages
	backend  *[256]byte    // and the server's

	mu         sync.Mutex
	list       []*Session              // guarded by mu
	unfollowed map[*Session]Unfollowed // guarded by mu
	idle       []*Session              // used by the drainer only: the other list, empty

	unread atomic.Uint64 // claims of the engine that could not be read
	warned bool          // about them; used by the drainer only

	counts  tracker.Counts // used by the drainer only
	dropped uint64         // used by the drainer only

	published struct {
		sync.Mutex
		counts  tracker.Counts
		dropped uint64
	}
}

// Options configures a Drainer. Package proxy documents the fields and fills in the defaults.
type Options struct {
	Sink                           Sink
	Samples                        *Samples
	MaybeProtected                 func(sql string) bool
	BudgetBytes, MaxStatementBytes int
	ClaimPrefix                    string
	Interval                       time.Duration
	Logger                         *zap.Logger
}

// Sink receives captured queries. Offer must not block; false means that the query was dropped. It is called from one
// goroutine at a time.
type Sink interface {
	Offer(q capture.Query) bool
}

// Samples holds a few of the statements that are not captured.
type Samples = capture.Samples

// NewDrainer returns a Drainer; Run drains.
func NewDrainer(o Options) *Drainer {
	return &Drainer{
		opts: o, log: o.Logger.Named("capture"), wake: make(chan struct{}, 1),
		frontend: frontendKinds(), backend: backendKinds(o.ClaimPrefix != ""), unfollowed: map[*Session]Unfollowed{},
	}
}

// Open returns the capture state of a new session.
func (d *Drainer) Open(id uint64, startup tracker.Startup) *Session {
	o := &d.opts
	t := &Session{drainer: d, id: id, startup: startup}
	t.client = tap{pool: &d.records, limit: o.BudgetBytes * 3 / 4}
	t.server = tap{pool: &d.records, limit: o.BudgetBytes / 4}
	t.tracker = tracker.New(tracker.Config{
		SessionID: id, Began: time.Now(), Startup: startup,
		MaxStatementBytes: o.MaxStatementBytes, MaxHeldBytes: o.BudgetBytes,
		StatedClaims: o.ClaimPrefix != "", MaybeProtected: o.MaybeProtected, Emit: d.emit, Counts: &d.counts, Samples: o.Samples,
	})
	return t
}

func (d *Drainer) emit(q capture.Query) {
	if !d.opts.Sink.Offer(q) {
		d.dropped++
	}
}

func (d *Drainer) queue(t *Session) {
	d.mu.Lock()
	d.list = append(d.list, t)
	d.mu.Unlock()
}

// Run drains every interval until stop is closed, and once more after that.
func (d *Drainer) Run(stop <-chan struct{}) {
	wait := d.opts.Interval
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-d.wake:
		case <-stop:
			d.pass()
			return
		}
		if d.pass() {
			wait = d.opts.Interval
		} else {
			wait = min(2*wait, idleIntervals*d.opts.Interval)
		}
		timer.Reset(wait)
	}
}

// idleIntervals is the longest wait of an idle drainer, in intervals.
const idleIntervals = 8

// hurry makes the drainer run before the interval is over: for a tap that is half full, never for a message.
func (d *Drainer) hurry() {
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// pass drains every session in the list and reports whether there was one.
func (d *Drainer) pass() bool {
	d.mu.Lock()
	sessions := d.list
	d.list = d.idle
	d.mu.Unlock()
	for i, t := range sessions {
		d.session(t)
		sessions[i] = nil
	}
	d.idle = sessions[:0]
	if len(sessions) == 0 {
		return false
	}
	d.publish()
	return true
}

// session runs one tracker on the records of its taps. A panic stops the capture of that session.
func (d *Drainer) session(t *Session) {
	defer func() {
		if fault := recover(); fault != nil {
			d.counts.Off[tracker.OffPanic]++
			d.log.Error("capture of a session stopped by a panic", zap.Stack("stack"))
			t.stopped.Store(true)
			t.tracker = nil
			d.follow(t, tracker.OffPanic)
		}
	}()
	t.queued.Store(false) // before the taps are emptied, so that later records queue again
	ended := t.ended.Load()
	client, server := t.client.take(), t.server.take()
	defer d.records.give(client)
	defer d.records.give(server)
	d.counts.Skipped[tracker.NotCopied] += t.missed.Swap(0)
	if t.tracker != nil {
		d.track(t, recordsOf(client), recordsOf(server), ended)
	}
	if ended {
		d.follow(t, tracker.On)
	}
}

// track runs the tracker of a session.
func (d *Drainer) track(t *Session, client, server []byte, ended bool) {
	t.tracker.Feed(client, server)
	t.tracker.Stop(tracker.Off(t.off.Load()))
	if ended {
		t.tracker.End()
	}
	if off := t.tracker.Off(); ended || off != tracker.On {
		t.stopped.Store(true)
		t.tracker = nil
		t.Release()
		d.follow(t, off)
		return
	}
	inClient, inServer := t.tracker.Backlog()
	t.client.setBacklog(inClient)
	t.server.setBacklog(inServer)
	t.settle(t.tracker.Unanswered(), t.tracker.Idle())
	reason := tracker.OffOverflow
	if t.tracker.Lost() {
		reason = tracker.OffPairing
		t.lose()
	}
	if t.out.Load() {
		t.resume()
	}
	switch {
	case !t.out.Load():
		d.follow(t, tracker.On)
	case t.noted == tracker.On:
		d.follow(t, reason)
	}
}

func recordsOf(b *recordBuffer) []byte {
	if b == nil {
		return nil
	}
	return b.b
}

func (d *Drainer) publish() {
	if !d.warned && d.unread.Load() > 0 {
		d.warned = true
		d.log.Warn("a claim that the engine states in an answer (claims.answer) cannot be read and is ignored; later ones are only counted")
	}
	d.published.Lock()
	defer d.published.Unlock()
	d.published.counts, d.published.dropped = d.counts, d.dropped
}

// Counts returns the trackers' counters and the number of queries that the sink rejected.
func (d *Drainer) Counts() (counts tracker.Counts, dropped uint64) {
	d.published.Lock()
	defer d.published.Unlock()
	return d.published.counts, d.published.dropped
}

// UnreadClaims returns the number of messages of the engine with a claim that could not be read.
func (d *Drainer) UnreadClaims() uint64 { return d.unread.Load() }
