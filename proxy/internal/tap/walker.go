package tap

import (
	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/proxy/internal/tracker"
	"github.com/dpwatch/dpwatch/proxy/internal/wire"
)

// How a message is recorded, by its type.
const (
	impossible = iota // no message of this direction has this type
	ignore
	hear // nothing, but what the engine states in it
	note // its type only
	keep // its type and body
)

// maxServerBody limits the recorded bodies of the server's messages: command tags, statuses. maxError does so for
// errors, up to the SQLSTATE: the message is not recorded, because it can hold values of rows. maxCall does so for a
// FunctionCall, up to the OID of the function.
const (
	maxServerBody = 1 << 10
	maxError      = 64
	maxCall       = 4
)

// Walker follows the messages of one direction over chunks of any size. It reads headers, copies the few bodies that
// matter into the tap, and skips the others by their length. An announced length never causes an allocation.
type Walker struct {
	session *Session
	tap     *tap
	kinds   *[256]byte
	maxBody int
	server  bool // the direction from the server

	header     [wire.HeaderLen]byte
	have       int    // bytes of header
	rest       uint32 // bytes of the body to come
	wanted     int    // of these, bytes to record
	stamped    bool   // the time was recorded in this chunk
	stamps     bool   // record the time before a message that ends a statement, once per chunk
	gaps       int    // gaps seen so far
	partial    bool   // the body is not recorded, or not all of it: it is inspected
	overflowed bool   // there was no room for the last message
	inspect    inspection
	stating    *stating // nil: what the engine states is not read
}

// Walkers returns the walkers of both directions.
func (t *Session) Walkers() (client, server *Walker) {
	client = &Walker{session: t, tap: &t.client, kinds: t.drainer.frontend, maxBody: t.client.limit}
	server = &Walker{session: t, tap: &t.server, kinds: t.drainer.backend, maxBody: maxServerBody, server: true, stamps: true}
	if prefix := t.drainer.opts.ClaimPrefix; prefix != "" {
		server.stating = newStating(prefix)
	}
	return client, server
}

// frontendKinds classifies the client's messages (manual, chapter 55.7). Passwords ('p') are never recorded.
func frontendKinds() *[256]byte {
	return kinds("dHXp", "", "DScf", "QPBECF")
}

// backendKinds classifies the server's messages. Notices matter if the engine can state claims in them.
func backendKinds(stating bool) *[256]byte {
	ignored, heard := "RKADtdcv", "N"
	if !stating {
		ignored, heard = ignored+heard, ""
	}
	return kinds(ignored, heard, "I123sTnGHVW", "ECSZ")
}

func kinds(ignored, heard, noted, kept string) *[256]byte {
	var k [256]byte
	for kind, types := range map[byte]string{ignore: ignored, hear: heard, note: noted, keep: kept} {
		for i := range len(types) {
			k[types[i]] = kind
		}
	}
	return &k
}

// Sending announces that bytes of the client are about to be sent, which Walk sees only afterwards. It is not needed if
// Walk sees them before it can see an answer.
func (w *Walker) Sending() { w.session.sending.Store(true) }

// Walk follows the next chunk. A panic stops the capture of the session, not the session.
func (w *Walker) Walk(b []byte) {
	if !w.session.stopped.Load() {
		w.walk(b)
	}
}

func (w *Walker) walk(b []byte) {
	defer func() {
		if recover() != nil {
			w.session.Stop(tracker.OffPanic)
		}
	}()
	fill := 0
	for len(b) > 0 {
		var found finding
		fill, found, b = w.locked(b)
		switch found {
		case nonsense:
			w.session.Stop(tracker.OffProtocol)
			return
		case overflow:
			w.session.lose()
			w.locked(nil)
		case quiet:
			w.session.resume()
		}
	}
	if !w.server && w.session.sending.Load() {
		w.session.sending.Store(false)
	}
	if w.session.out.Load() {
		w.session.resume()
	}
	if fill > 0 {
		w.session.notify()
	}
	if fill > w.tap.limit/2 {
		w.session.drainer.hurry()
	}
}

// finding is a result of walking that concerns more than the walker's own tap.
type finding uint8

const (
	nothing  finding = iota
	nonsense         // an impossible length or type
	overflow         // no room for the message
	quiet            // in a gap: the server is idle outside a transaction
)

// locked walks with the tap locked until the first finding; rest is the part of b not yet walked. Fill is the number of
// bytes of whole records in the tap.
func (w *Walker) locked(b []byte) (fill int, found finding, rest []byte) {
	w.tap.mu.Lock()
	defer w.tap.mu.Unlock()
	if w.gaps != w.tap.gaps { // a gap removed the incomplete record
		w.torn()
	}
	w.stamped = false
	for len(b) > 0 && found == nothing {
		if w.rest > 0 {
			b, found = w.body(b)
			continue
		}
		if w.have == 0 {
			if b = w.skip(b); len(b) == 0 || w.rest > 0 {
				continue
			}
		}
		n := copy(w.header[w.have:], b)
		w.have += n
		b = b[n:]
		if w.have < wire.HeaderLen {
			break
		}
		w.have = 0
		found = w.message()
	}
	if within := w.have > 0 || w.rest > 0; w.server {
		w.session.answered.within = within
	} else {
		w.session.asked.within = within
	}
	return w.tap.committed, found, b
}

// torn continues in a gap with the message in which it began.
func (w *Walker) torn() {
	recorded := w.wanted > 0 // so far
	w.gaps, w.wanted = w.tap.gaps, 0
	if w.tap.lost && !w.partial && (recorded || w.overflowed) {
		w.miss(w.header[0])
		w.inspect.add(w.tap.missing.torn)
	}
	w.overflowed, w.tap.missing.torn = false, nil
}

// skip moves past the ignored messages at the beginning of b, which is most of a result. It is a fast path for message
// and body.
func (w *Walker) skip(b []byte) []byte {
	for len(b) >= wire.HeaderLen && w.kinds[b[0]] == ignore {
		length, ok := wire.Length(b)
		if !ok {
			return b
		}
		if uint64(length)+1 > uint64(len(b)) {
			w.header[0], w.rest = b[0], length+1-uint32(len(b))
			return nil
		}
		b = b[length+1:]
	}
	return b
}

// body consumes the part of b that belongs to the current body and returns the rest.
func (w *Walker) body(b []byte) ([]byte, finding) {
	n := len(b)
	if uint64(n) > uint64(w.rest) {
		n = int(w.rest)
	}
	if w.partial {
		w.inspect.add(b[:n])
	}
	if w.stating != nil {
		w.hear(b[:n], w.rest == uint32(n)) //nolint:gosec // n is at most rest
	}
	if w.wanted > 0 {
		k := min(n, w.wanted)
		w.wanted -= k
		w.tap.body(b[:k], w.wanted == 0 && !w.partial)
	}
	if w.rest -= uint32(n); w.rest == 0 {
		if w.partial {
			w.finish()
		}
		if w.server && w.header[0] == 'Z' {
			w.session.answered.idle = b[n-1] == 'I'
			if w.session.answered.idle && w.tap.lost {
				return b[n:], quiet
			}
		}
	}
	return b[n:], nothing
}

// finish ends the inspection of a body.
func (w *Walker) finish() {
	w.partial = false
	if !w.tap.lost {
		w.tap.finish(&w.inspect)
		return
	}
	w.tap.missing.risk |= w.inspect.end()
	if w.server && w.header[0] == 'S' {
		w.tap.missing.report(w.inspect.beginning())
	}
}

// message handles a complete header.
func (w *Walker) message() finding {
	typ := w.header[0]
	length, ok := wire.Length(w.header[:])
	kind := w.kinds[typ]
	if !ok || kind == impossible {
		return nonsense
	}
	w.rest = length - 4
	if kind == ignore {
		return nothing
	}
	var stated capture.Stated
	if w.stating != nil {
		stated = w.stating.message(typ, w.rest)
	}
	if kind == hear {
		return nothing
	}
	w.count(typ)
	if w.tap.lost {
		w.miss(typ)
		return nothing
	}
	if w.stamps && !w.stamped && endsStatement(typ) {
		w.stamped = true
		w.tap.stamp()
	}
	ok = stated.None() || w.tap.stated(stated)
	switch {
	case !ok:
	case kind == note:
		ok = w.tap.header(typ)
	default:
		ok = w.keep(typ)
	}
	if !ok {
		w.overflowed = true
		return overflow
	}
	return nothing
}

// endsStatement reports whether a message of the server can end a statement.
func endsStatement(typ byte) bool { return typ == 'C' || typ == 's' || typ == 'E' || typ == 'V' }

// keep begins the record of a message with its body; false if there is no room.
func (w *Walker) keep(typ byte) bool {
	limit := w.maxBody
	switch {
	case w.server && typ == 'E':
		limit = maxError
	case !w.server && typ == 'F':
		limit = maxCall
	}
	wanted, whole, ok := w.tap.begin(typ, int(w.rest), limit)
	if w.wanted = wanted; ok && !whole {
		w.partial = true
		w.inspect.begin(typ, w.server)
	}
	return ok
}

// count counts a message of a kind that is not ignored.
func (w *Walker) count(typ byte) {
	switch {
	case !w.server:
		w.session.asked.message(typ)
	case typ != 'S':
		w.session.answered.message(typ)
	}
}

// miss begins a message in a gap.
func (w *Walker) miss(typ byte) {
	if w.server && endsStatement(typ) {
		w.session.missed.Add(1)
	}
	w.inspect.begin(typ, w.server)
	if w.partial = w.rest > 0 && w.kinds[typ] == keep; !w.partial {
		w.finish()
	}
}
