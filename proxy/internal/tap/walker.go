package tap

import (
	"github.com/dpwatch/dpwatch/proxy/internal/tracker"
	"github.com/dpwatch/dpwatch/proxy/internal/wire"
)

// How a message is recorded, by its type.
const (
	impossible = iota // no message of this direction has this type
	ignore
	note // its type only
	keep // its type and body
)

// maxServerBody limits the recorded bodies of the server's messages: command tags, statuses.
const maxServerBody = 1 << 10

// asks are the client's messages that the server answers with one ReadyForQuery each; answers is ReadyForQuery.
var asks, answers = [256]bool{'Q': true, 'S': true, 'F': true}, [256]bool{'Z': true}

// Walker follows the messages of one direction over chunks of any size. It reads headers, copies the few bodies that matter
// into the tap, and skips the others by their length. An announced length never causes an allocation.
type Walker struct {
	session *Session
	tap     *tap
	kinds   *[256]byte
	maxBody int
	stamps  bool       // server direction: record the time before a message that completes a statement, once per chunk
	turns   *[256]bool // asks or answers

	header  [wire.HeaderLen]byte
	have    int    // bytes of header
	rest    uint32 // bytes of the body to come
	wanted  int    // of these, bytes to record
	stamped bool
	gaps    int  // gaps seen so far
	turned  bool // the last message that is not ignored was one of turns
}

// Walkers returns the walkers of both directions.
func (t *Session) Walkers() (client, server *Walker) {
	client = &Walker{session: t, tap: &t.client, kinds: t.drainer.frontend, turns: &asks, maxBody: t.client.limit}
	server = &Walker{session: t, tap: &t.server, kinds: t.drainer.backend, turns: &answers, maxBody: maxServerBody, stamps: true}
	return client, server
}

// frontendKinds classifies the client's messages (manual, chapter 55.7). Passwords ('p') are never recorded.
func frontendKinds() *[256]byte {
	return kinds("dHXp", "DSFcf", "QPBEC")
}

// backendKinds classifies the server's messages. CopyBothResponse ('W') belongs to replication only.
func backendKinds() *[256]byte {
	return kinds("RKNADtdcHv", "IE123sTnGV", "CSZ")
}

func kinds(ignored, noted, kept string) *[256]byte {
	var k [256]byte
	for kind, types := range map[byte]string{ignore: ignored, note: noted, keep: kept} {
		for i := range len(types) {
			k[types[i]] = kind
		}
	}
	return &k
}

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
		case unreported:
			w.session.Stop(tracker.OffOverflow)
			return
		case overflow:
			w.session.lose()
		case quiet:
			w.session.resume()
		}
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
	nothing    finding = iota
	nonsense           // an impossible length or type
	overflow           // no room for the message
	unreported         // a ParameterStatus was lost in a gap
	quiet              // in a gap: the server is idle outside a transaction
)

// locked walks with the tap locked until the first finding; rest is the part of b not yet walked. Fill is the number of
// bytes of whole records in the tap.
func (w *Walker) locked(b []byte) (fill int, found finding, rest []byte) {
	w.tap.mu.Lock()
	defer w.tap.mu.Unlock()
	if w.gaps != w.tap.gaps { // a gap removed the incomplete record
		if w.wanted > 0 && w.stamps && w.header[0] == 'S' {
			return 0, unreported, b
		}
		w.gaps, w.wanted = w.tap.gaps, 0
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
	w.tap.within = w.have > 0 || w.rest > 0 || !w.turned
	return w.tap.committed, found, b
}

// skip moves past the ignored messages at the beginning of b, which is most of a result. It is a fast path for message and
// body.
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
	if w.wanted > 0 {
		k := min(n, w.wanted)
		w.wanted -= k
		w.tap.body(b[:k], w.wanted == 0)
	}
	w.rest -= uint32(n)
	if w.tap.lost && w.stamps && w.header[0] == 'Z' && w.rest == 0 && b[n-1] == 'I' {
		return b[n:], quiet
	}
	return b[n:], nothing
}

// message classifies a complete header.
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
	if w.turned = w.turns[typ]; w.turned {
		w.tap.turns++
	}
	if w.tap.lost && (typ != 'S' || !w.stamps) { // ParameterStatus is recorded even in a gap
		if w.stamps && typ == 'C' {
			w.session.missed.Add(1)
		}
		return nothing
	}
	if w.stamps && !w.stamped && (typ == 'C' || typ == 's') {
		w.stamped = true
		w.tap.stamp()
	}
	if kind == note {
		ok = w.tap.header(typ)
	} else {
		w.wanted, ok = w.tap.begin(typ, int(w.rest), w.maxBody)
	}
	switch {
	case ok:
		return nothing
	case w.tap.lost:
		return unreported
	}
	return overflow
}
