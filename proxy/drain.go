package proxy

import (
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/proxy/internal/tracker"
)

// drainer is the one goroutine that takes the taps' records and runs the trackers. No message wakes it. It polls its list of
// sessions every interval, less often while the list is empty, and earlier only when a tap is half full.
type drainer struct {
	interval time.Duration
	sink     Sink
	log      *zap.Logger
	records  recordPool
	wake     chan struct{} // holds a token when a tap fills faster than the interval
	frontend *[256]byte    // how to record the client's messages
	backend  *[256]byte    // and the server's

	mu   sync.Mutex
	list []*tapped // guarded by mu
	idle []*tapped // used by the drainer only: the other list, empty

	counts  tracker.Counts // used by the drainer only
	dropped uint64         // used by the drainer only

	published struct {
		sync.Mutex
		counts  tracker.Counts
		dropped uint64
	}
}

func newDrainer(o *Options) *drainer {
	return &drainer{
		interval: o.DrainInterval, sink: o.Sink, log: o.Logger.Named("capture"), wake: make(chan struct{}, 1),
		frontend: frontendKinds(), backend: backendKinds(),
	}
}

// open returns the capture state of a new session.
func (d *drainer) open(id uint64, startup tracker.Startup, o *Options) *tapped {
	t := &tapped{drainer: d}
	t.client = tap{pool: &d.records, limit: o.CaptureBudgetBytes * 3 / 4}
	t.server = tap{pool: &d.records, limit: o.CaptureBudgetBytes / 4}
	t.tracker = tracker.New(tracker.Config{
		SessionID: id, Startup: startup,
		MaxStatementBytes: o.MaxStatementBytes, MaxHeldBytes: o.CaptureBudgetBytes,
		Interesting: o.Interesting, Emit: d.emit, Counts: &d.counts,
	})
	return t
}

func (d *drainer) emit(q capture.Query) {
	if !d.sink.Offer(q) {
		d.dropped++
	}
}

func (d *drainer) queue(t *tapped) {
	d.mu.Lock()
	d.list = append(d.list, t)
	d.mu.Unlock()
}

// run drains every interval until stop is closed, and once more after that.
func (d *drainer) run(stop <-chan struct{}) {
	wait := d.interval
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
			wait = d.interval
		} else {
			wait = min(2*wait, idleIntervals*d.interval)
		}
		timer.Reset(wait)
	}
}

// idleIntervals is the longest wait of an idle drainer, in intervals.
const idleIntervals = 8

// hurry makes the drainer run before the interval is over: for a tap that is half full, never for a message.
func (d *drainer) hurry() {
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// pass drains every session in the list and reports whether there was one.
func (d *drainer) pass() bool {
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
func (d *drainer) session(t *tapped) {
	defer func() {
		if fault := recover(); fault != nil {
			d.counts.Off[tracker.OffPanic]++
			d.log.Error("capture of a session stopped by a panic", zap.Stack("stack"))
			t.stopped.Store(true)
			t.tracker = nil
		}
	}()
	t.queued.Store(false) // before the taps are emptied, so that later records queue again
	ended := t.ended.Load()
	client, server := t.client.take(), t.server.take()
	defer d.records.give(client)
	defer d.records.give(server)
	d.counts.Skipped[tracker.NotCopied] += t.missed.Swap(0)
	if t.tracker == nil {
		return
	}
	t.tracker.Feed(recordsOf(client), recordsOf(server))
	t.tracker.Stop(tracker.Off(t.off.Load()))
	if ended || t.tracker.Off() != tracker.On {
		t.stopped.Store(true)
		t.tracker = nil
		t.client.drop()
		t.server.drop()
		return
	}
	inClient, inServer := t.tracker.Backlog()
	t.client.setBacklog(inClient)
	t.server.setBacklog(inServer)
}

func recordsOf(b *recordBuffer) []byte {
	if b == nil {
		return nil
	}
	return b.b
}

func (d *drainer) publish() {
	d.published.Lock()
	defer d.published.Unlock()
	d.published.counts, d.published.dropped = d.counts, d.dropped
}

func (d *drainer) addTo(stats *Stats) {
	d.published.Lock()
	defer d.published.Unlock()
	stats.add(&d.published.counts, d.published.dropped)
}
