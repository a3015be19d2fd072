package tap

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/dpwatch/dpwatch/proxy/internal/tracker"
)

// recordBuffer is memory for records, pooled so that idle sessions hold none.
type recordBuffer struct{ b []byte }

// maxPooledRecords is the size of the largest buffer that returns to the pool, in bytes.
const maxPooledRecords = 64 << 10

type recordPool struct{ pool sync.Pool }

func (p *recordPool) take() *recordBuffer {
	if b, ok := p.pool.Get().(*recordBuffer); ok {
		return b
	}
	return &recordBuffer{b: make([]byte, 0, 4<<10)}
}

func (p *recordPool) give(b *recordBuffer) {
	if b == nil || cap(b.b) > maxPooledRecords {
		return
	}
	b.b = b.b[:0]
	p.pool.Put(b)
}

// tap collects the records of one direction of one session until the drainer takes them. It is bounded and never blocks for
// longer than a copy takes.
type tap struct {
	pool  *recordPool
	limit int // bytes of records, including those that the tracker still holds

	mu        sync.Mutex // guards the fields below
	buf       *recordBuffer
	committed int  // bytes of buf that are whole records
	backlog   int  // bytes that the tracker still holds
	lost      bool // in a gap: no message is recorded
	gaps      int  // gaps begun so far
	// In this direction since the session began: messages that the server answers with ReadyForQuery, or those answers.
	turns  uint64
	within bool // inside a message, or the last one was none of those
}

// begin starts the record of a message and returns how many bytes of its body to record. Bodies can fill three quarters of
// the limit. The last quarter is for headers, because the type of a message matters longer than its body. False means that
// not even the header fits. The caller holds mu.
func (t *tap) begin(typ byte, bodyLen, maxBody int) (keep int, ok bool) {
	if t.buf == nil {
		t.buf = t.pool.take()
	}
	room := t.limit - t.backlog - len(t.buf.b) - tracker.HeaderLen
	if room < 0 {
		return 0, false
	}
	bodyRoom := room - t.limit/4
	switch {
	case bodyLen <= maxBody && (bodyLen == 0 || bodyLen <= bodyRoom):
		keep = bodyLen
		t.buf.b = tracker.AppendHeader(t.buf.b, typ, keep)
	default:
		if keep = min(bodyLen, maxBody, tracker.CutLen); keep > bodyRoom {
			keep = 0
		}
		t.buf.b = tracker.AppendCut(t.buf.b, typ, keep)
	}
	if keep == 0 {
		t.committed = len(t.buf.b)
	}
	return keep, true
}

// header records a message without its body.
func (t *tap) header(typ byte) bool {
	_, ok := t.begin(typ, 0, 0)
	return ok
}

// body appends to the last record; whole means that the record is now complete.
func (t *tap) body(b []byte, whole bool) {
	t.buf.b = append(t.buf.b, b...)
	if whole {
		t.committed = len(t.buf.b)
	}
}

// stampLen is the size of a time record.
const stampLen = tracker.HeaderLen + 8

// stamp records the time for the records that follow, if there is room.
func (t *tap) stamp() {
	if t.buf == nil {
		t.buf = t.pool.take()
	}
	if t.backlog+len(t.buf.b)+stampLen > t.limit {
		return
	}
	t.buf.b = tracker.AppendTime(t.buf.b, time.Now())
	t.committed = len(t.buf.b)
}

// take returns the whole records, nil if there are none. The caller returns the buffer to the pool.
func (t *tap) take() *recordBuffer {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.committed == 0 {
		return nil
	}
	taken := t.buf
	t.buf = nil
	if rest := taken.b[t.committed:]; len(rest) > 0 {
		t.buf = t.pool.take()
		t.buf.b = append(t.buf.b, rest...)
	}
	taken.b = taken.b[:t.committed]
	t.committed = 0
	return taken
}

// setBacklog sets the number of taken bytes that the tracker still holds.
func (t *tap) setBacklog(n int) {
	t.mu.Lock()
	t.backlog = n
	t.mu.Unlock()
}

// gap begins a gap and removes the incomplete record. A gap always has room, because the tracker discards its backlog when
// it reads one. The caller holds mu.
func (t *tap) gap() {
	if t.buf == nil {
		t.buf = t.pool.take()
	}
	t.buf.b = tracker.AppendGap(t.buf.b[:t.committed])
	t.committed = len(t.buf.b)
	t.lost = true
	t.gaps++
}

// drop returns the memory to the pool.
func (t *tap) drop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pool.give(t.buf)
	t.buf, t.committed = nil, 0
}

// Session is the capture state of one session: both taps and, for the drainer only, the tracker.
type Session struct {
	client, server tap
	tracker        *tracker.Tracker
	drainer        *Drainer

	missed  atomic.Uint64 // statements that completed in gaps, not yet counted
	queued  atomic.Bool   // in the drainer's list
	stopped atomic.Bool   // capture has ended
	off     atomic.Int32  // tracker.Off: why a walker stopped
	ended   atomic.Bool   // the session is over
}

// notify adds the session to the drainer's list unless it is in it.
func (t *Session) notify() {
	if !t.queued.Swap(true) {
		t.drainer.queue(t)
	}
}

// Stop ends the capture; walkers call it.
func (t *Session) Stop(reason tracker.Off) {
	t.off.CompareAndSwap(int32(tracker.On), int32(reason))
	t.stopped.Store(true)
	t.notify()
}

// lose begins a gap in both directions, because the messages exceed the budget. Capture resumes when the session is idle
// (resume); from there on the settings are uncertain.
func (t *Session) lose() {
	t.client.mu.Lock()
	t.server.mu.Lock()
	if !t.client.lost {
		t.client.gap()
		t.server.gap()
	}
	t.server.mu.Unlock()
	t.client.mu.Unlock()
	t.notify()
	t.drainer.hurry()
}

// resume ends a gap if nothing is in progress: the server has just reported that it is idle outside a transaction, and has
// answered everything that the client sent.
func (t *Session) resume() {
	t.client.mu.Lock()
	t.server.mu.Lock()
	if t.server.turns == t.client.turns+1 && !t.client.within { // the extra one ends the startup
		t.client.lost, t.server.lost = false, false
	}
	t.server.mu.Unlock()
	t.client.mu.Unlock()
}

// End marks the session as over: no more records come.
func (t *Session) End() {
	t.ended.Store(true)
	t.notify()
}

// Release discards the whole and partial records and returns their memory to the pool.
func (t *Session) Release() {
	t.client.drop()
	t.server.drop()
}

// Stopped reports whether capture has ended.
func (t *Session) Stopped() bool { return t.stopped.Load() }
