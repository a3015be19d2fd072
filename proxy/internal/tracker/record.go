package tracker

import (
	"encoding/binary"
	"time"
)

// A record is what the relay keeps of one message: its type, whether its body is whole, the length of what is
// kept of the body, and that. Records follow each other without a gap.
const (
	headerLen = 6
	whole     = 0
	cut       = 1 // the body was too long to keep, or there was no room: only its beginning is there
)

// HeaderLen is how many bytes a record takes besides its body.
const HeaderLen = headerLen

// CutLen is how much of a body that is not kept is worth keeping: enough for the names at its beginning.
const CutLen = 2*maxName + 2

// timeRecord is a type that no message has: its body is the moment at which the records behind it were seen,
// in nanoseconds since 1970.
const timeRecord = 0

// gapRecord is a type that no message has either: from there on messages are missing, and behind it the session begins anew
// at a moment when nothing was under way. Both directions have one for every gap.
const gapRecord = 1

// AppendGap appends a gap.
func AppendGap(dst []byte) []byte { return appendHeader(dst, gapRecord, whole, 0) }

// AppendHeader appends the beginning of a record whose body of n bytes the caller appends next.
// It allocates nothing when dst has room for HeaderLen more bytes.
func AppendHeader(dst []byte, typ byte, n int) []byte { return appendHeader(dst, typ, whole, n) }

// AppendCut is AppendHeader for a message of whose body only the first n bytes are kept, which may be none.
func AppendCut(dst []byte, typ byte, n int) []byte { return appendHeader(dst, typ, cut, n) }

// AppendTime appends the moment at which the records behind it were seen.
func AppendTime(dst []byte, now time.Time) []byte {
	dst = appendHeader(dst, timeRecord, whole, 8)
	return binary.LittleEndian.AppendUint64(dst, uint64(now.UnixNano()))
}

func appendHeader(dst []byte, typ, flag byte, n int) []byte {
	dst = append(dst, typ, flag)
	return binary.LittleEndian.AppendUint32(dst, uint32(n))
}

// record is one record; body points into the queue and is valid until the next push.
type record struct {
	typ  byte
	cut  bool
	body []byte
}

// queue is a first-in-first-out queue of records. Between push and settle it may read from memory that it
// does not own.
type queue struct {
	buf []byte // what is not yet taken
	own []byte // the queue's own memory, into which settle moves what is left
}

// push adds whole records. Unless something was left it borrows them until settle.
func (q *queue) push(records []byte) {
	if len(q.buf) == 0 {
		q.buf = records
		return
	}
	q.own = append(q.own, records...)
	q.buf = q.own
}

// maxIdleQueue is how much memory an empty queue may keep, in bytes.
const maxIdleQueue = 4 << 10

// settle copies what is left into the queue's own memory, so that the records pushed may be reused.
func (q *queue) settle() {
	if len(q.buf) == 0 {
		q.buf = nil
		q.own = q.own[:0]
		if cap(q.own) > maxIdleQueue {
			q.own = nil
		}
		return
	}
	q.own = append(q.own[:0], q.buf...)
	q.buf = q.own
}

// peek returns the oldest record and its length in the queue; false when there is none. A queue that does
// not hold whole records ends where it breaks.
func (q *queue) peek() (record, int, bool) {
	if len(q.buf) < headerLen {
		return record{}, 0, false
	}
	n := headerLen + int(binary.LittleEndian.Uint32(q.buf[2:]))
	if n > len(q.buf) || n < headerLen {
		return record{}, 0, false
	}
	return record{typ: q.buf[0], cut: q.buf[1] == cut, body: q.buf[headerLen:n]}, n, true
}

// gap returns how many bytes there are up to the first gap and with it, 0 when there is none.
func (q *queue) gap() int {
	for at := (queue{buf: q.buf}); ; {
		r, n, ok := at.peek()
		if !ok {
			return 0
		}
		at.drop(n)
		if r.typ == gapRecord {
			return len(q.buf) - len(at.buf)
		}
	}
}

// drop takes the first n bytes out, as peek counted them.
func (q *queue) drop(n int) { q.buf = q.buf[n:] }

// pop takes the oldest record out.
func (q *queue) pop() (record, bool) {
	r, n, ok := q.peek()
	if ok {
		q.drop(n)
	}
	return r, ok
}

// recordTime reads the body of a time record.
func recordTime(body []byte) time.Time {
	if len(body) != 8 {
		return time.Time{}
	}
	return time.Unix(0, int64(binary.LittleEndian.Uint64(body)))
}
