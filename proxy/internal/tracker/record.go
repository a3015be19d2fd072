package tracker

import (
	"encoding/binary"
	"time"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/sqltext"
)

// A record is the copy of one message: its type, flags, the length of the recorded body, and the recorded body. Records
// are contiguous. The bits of the flags from riskShift on are the sqltext.Risk of a body that was cut.
const (
	whole     = 0
	cut       = 1 // the body was too long, or there was no room: only its beginning is recorded
	inspected = 2 // cut, and the risk is that of the whole body
	riskShift = 2
	placed    = 1 << 7 // the whole body is an error with a place in the statement
)

// HeaderLen is the size of a record without its body, in bytes.
const HeaderLen = 6

// CutLen is how much of a truncated body is recorded: enough for the names at its beginning.
const CutLen = 2*maxName + 2

// timeRecord is a type that no message uses. Its body is the time at which the records after it were seen, in
// nanoseconds since 1970.
const timeRecord = 0

// gapRecord and resumeRecord are other types that no message uses: the beginning and the end of a gap, in which
// messages are missing. At its end the session was idle outside a transaction. Both directions have both for every gap,
// and between them only the last report of each setting that the gate reads.
const (
	gapRecord    = 1
	resumeRecord = 2
)

// AppendGap appends the beginning of a gap.
func AppendGap(dst []byte) []byte { return appendHeader(dst, gapRecord, whole, 0) }

// statedRecord is another type that no message uses: what the engine states about the answer that the next record ends
// or suspends.
const statedRecord = 3

// AppendStated appends what the engine states about an answer, before the record of the message that ends it.
func AppendStated(dst []byte, s capture.Stated) []byte {
	return s.AppendBinary(appendHeader(dst, statedRecord, whole, StatedLen-HeaderLen))
}

// StatedLen is the size of what AppendStated appends.
const StatedLen = HeaderLen + capture.StatedLen

// Gap is what one direction knows about the messages of a gap.
type Gap struct {
	Risk sqltext.Risk
	// Syncs is the greatest number of the client's last messages, all of them Sync messages with nothing before them to
	// answer, that the server may still answer after the gap.
	Syncs int
}

// AppendResume appends the end of a gap.
func AppendResume(dst []byte, g Gap) []byte {
	dst = append(appendHeader(dst, resumeRecord, whole, 5), byte(g.Risk))
	return binary.LittleEndian.AppendUint32(dst, uint32(g.Syncs))
}

func decodeGap(body []byte) Gap {
	if len(body) != 5 {
		return Gap{Risk: sqltext.AllRisks}
	}
	return Gap{Risk: sqltext.Risk(body[0]), Syncs: int(binary.LittleEndian.Uint32(body[1:]))}
}

// AppendHeader appends the beginning of a record; the caller then appends its body of n bytes. It does not allocate if
// dst has room for HeaderLen more bytes.
func AppendHeader(dst []byte, typ byte, n int) []byte { return appendHeader(dst, typ, whole, n) }

// AppendCut is AppendHeader for a message whose body is recorded only up to n bytes, possibly 0.
func AppendCut(dst []byte, typ byte, n int) []byte { return appendHeader(dst, typ, cut, n) }

// Inspect adds to a cut record, given from its beginning, the risk of its whole body.
func Inspect(record []byte, r sqltext.Risk) { record[1] = cut | inspected | byte(r)<<riskShift }

// Place notes in a cut record, given from its beginning, that its whole body is an error with a place in the statement.
func Place(record []byte) { record[1] |= placed }

// AppendTime appends the time at which the records after it were seen.
func AppendTime(dst []byte, now time.Time) []byte {
	dst = appendHeader(dst, timeRecord, whole, 8)
	return binary.LittleEndian.AppendUint64(dst, uint64(now.UnixNano()))
}

func appendHeader(dst []byte, typ, flag byte, n int) []byte {
	dst = append(dst, typ, flag)
	return binary.LittleEndian.AppendUint32(dst, uint32(n))
}

// record is one record. Body points into the queue and is valid until the next push.
type record struct {
	typ    byte
	cut    bool
	risk   sqltext.Risk // if it is cut
	placed bool         // it is an error with a place in the statement
	body   []byte
}

// queue is a FIFO queue of records. Between push and settle it can refer to the caller's memory.
type queue struct {
	buf []byte // records not yet taken
	own []byte // the queue's own memory, to which settle moves the rest
}

// push adds whole records. If the queue is empty it borrows them until settle.
func (q *queue) push(records []byte) {
	if len(q.buf) == 0 {
		q.buf = records
		return
	}
	q.own = append(q.own, records...)
	q.buf = q.own
}

// maxIdleQueue limits the memory that an empty queue keeps, in bytes.
const maxIdleQueue = 4 << 10

// settle copies the rest into the queue's own memory, so that the caller can reuse the records pushed.
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

// peek returns the oldest record and its length in the queue; false if there is none or it is incomplete.
func (q *queue) peek() (record, int, bool) {
	if len(q.buf) < HeaderLen {
		return record{}, 0, false
	}
	n := HeaderLen + int(binary.LittleEndian.Uint32(q.buf[2:]))
	if n > len(q.buf) || n < HeaderLen {
		return record{}, 0, false
	}
	r := record{typ: q.buf[0], body: q.buf[HeaderLen:n]}
	if flags := q.buf[1]; flags != whole {
		r.cut, r.risk, r.placed = true, sqltext.Unread, flags&placed != 0
		if flags&inspected != 0 {
			r.risk = sqltext.Risk(flags &^ placed >> riskShift)
		}
	}
	return r, n, true
}

// gap returns the number of bytes up to and including the first gap, 0 without a gap.
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

// drop removes the first n bytes, where n comes from peek.
func (q *queue) drop(n int) { q.buf = q.buf[n:] }

// pop removes the oldest record and returns it.
func (q *queue) pop() (record, bool) {
	r, n, ok := q.peek()
	if ok {
		q.drop(n)
	}
	return r, ok
}

func recordTime(body []byte) time.Time {
	if len(body) != 8 {
		return time.Time{}
	}
	return time.Unix(0, int64(binary.LittleEndian.Uint64(body)))
}

// next removes the next record unless it is a gap.
func (q *queue) next() (record, bool) {
	if r, _, ok := q.peek(); !ok || r.typ == gapRecord {
		return record{}, false
	}
	return q.pop()
}
