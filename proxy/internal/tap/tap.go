package tap

import (
	"bytes"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dpwatch/dpwatch/internal/capture"
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

// tap collects the records of one direction of one session until the drainer takes them. It is bounded and never blocks
// for longer than a copy takes.
type tap struct {
	pool  *recordPool
	limit int // bytes of records, including those that the tracker still holds

	mu        sync.Mutex // guards the fields below
	buf       *recordBuffer
	committed int  // bytes of buf that are whole records
	backlog   int  // bytes that the tracker still holds
	lost      bool // in a gap: no message is recorded
	gaps      int  // gaps begun so far
	missing   missing
}

// empty reports whether there are no records.
func (t *tap) empty() bool { return t.buf == nil || len(t.buf.b) == 0 }

// room returns the buffer.
func (t *tap) room() *recordBuffer {
	if t.buf == nil {
		t.buf = t.pool.take()
	}
	return t.buf
}

// begin starts the record of a message and returns how many bytes of its body to record, and whether these are all.
// Long bodies can fill three quarters of the limit. The last quarter is for short ones and for the beginnings of long
// ones, because the session can be followed without the rest. It fails if there is no room. The caller holds mu, and
// calls finish for a body of which not all is recorded.
func (t *tap) begin(typ byte, bodyLen, maxBody int) (keep int, whole, ok bool) {
	room := t.limit - t.backlog - len(t.room().b) - tracker.HeaderLen
	long := bodyLen > tracker.CutLen
	switch {
	case bodyLen <= maxBody && (bodyLen <= room-t.limit/4 || !long && bodyLen <= room):
		t.buf.b = tracker.AppendHeader(t.buf.b, typ, bodyLen)
		if bodyLen == 0 {
			t.committed = len(t.buf.b)
		}
		return bodyLen, true, true
	case !long && bodyLen <= maxBody:
		return 0, false, false
	}
	if keep = min(maxBody, tracker.CutLen); keep > room {
		return 0, false, false
	}
	t.buf.b = tracker.AppendCut(t.buf.b, typ, keep)
	return keep, false, true
}

// header records a message without its body.
func (t *tap) header(typ byte) bool {
	_, _, ok := t.begin(typ, 0, 0)
	return ok
}

// body appends to the last record; whole means that the record is now complete.
func (t *tap) body(b []byte, whole bool) {
	t.buf.b = append(t.buf.b, b...)
	if whole {
		t.committed = len(t.buf.b)
	}
}

// finish completes the record of a message of which only the beginning is recorded, with what its whole body shows.
func (t *tap) finish(i *inspection) {
	if i.text {
		tracker.Inspect(t.buf.b[t.committed:], i.risk)
	}
	if i.fields.placed {
		tracker.Place(t.buf.b[t.committed:])
	}
	t.committed = len(t.buf.b)
}

// stampLen is the size of a time record.
const stampLen = tracker.HeaderLen + 8

// stamp records the time for the records that follow, if there is room.
func (t *tap) stamp() {
	if t.backlog+len(t.room().b)+stampLen > t.limit {
		return
	}
	t.buf.b = tracker.AppendTime(t.buf.b, time.Now())
	t.committed = len(t.buf.b)
}

// stated records what the engine states about the answer that the next record ends; false if there is no room.
func (t *tap) stated(s capture.Stated) bool {
	if t.backlog+len(t.room().b)+tracker.StatedLen > t.limit {
		return false
	}
	t.buf.b = tracker.AppendStated(t.buf.b, s)
	t.committed = len(t.buf.b)
	return true
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

// gap begins a gap and removes the incomplete record. A gap always has room, because the tracker discards its backlog
// when it reads one. The caller holds mu.
func (t *tap) gap() {
	partial := t.room().b[t.committed:]
	t.missing = missing{torn: bytes.Clone(partial[min(len(partial), tracker.HeaderLen):])}
	t.buf.b = tracker.AppendGap(t.buf.b[:t.committed])
	t.committed = len(t.buf.b)
	t.lost = true
	t.gaps++
}

// resume ends a gap. The caller holds mu.
func (t *tap) resume(g tracker.Gap) {
	t.buf.b = tracker.AppendResume(t.room().b, g)
	t.committed = len(t.buf.b)
	t.lost = false
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
	id             uint64
	startup        tracker.Startup
	noted          tracker.Off        // why the session is not followed; used by the drainer only
	asked          asked              // guarded by client.mu
	answered       answered           // guarded by server.mu
	unanswered     tracker.Unanswered // guarded by both locks
	base           tracker.Unanswered // what unanswered was when the counts began; guarded by both locks
	resumed        int                // gaps ended so far; guarded by both locks

	missed  atomic.Uint64 // statements that completed in gaps, not yet counted
	queued  atomic.Bool   // in the drainer's list
	stopped atomic.Bool   // capture has ended
	off     atomic.Int32  // tracker.Off: why a walker stopped
	ended   atomic.Bool   // the session is over
	out     atomic.Bool   // in a gap
	sending atomic.Bool   // the client's walker has not seen all bytes that may have reached the server
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
