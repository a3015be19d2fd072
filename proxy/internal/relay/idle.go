package relay

import (
	"sync/atomic"
	"time"

	"github.com/dpwatch/dpwatch/proxy/internal/wire"
)

// idleWatch tracks whether a session is idle outside a transaction: every Query, Sync and FunctionCall has received its
// ReadyForQuery, and the last one had status I. In doubt, the session does not count as idle. It exists only if idle
// sessions are ended.
type idleWatch struct {
	client, server headers
	pending        atomic.Int64 // ReadyForQuery messages still expected
	idle           atomic.Bool  // the last one had status I
	seen           uint64       // used by the sweep only: bytes relayed at the last check
	since          time.Time    // used by the sweep only: when that count was first seen
	ended          atomic.Bool  // ended by the sweep
}

// headers follows the messages of one direction over chunks of any size and reports their types and first bytes.
type headers struct {
	each  func(typ, first byte)
	head  [wire.HeaderLen]byte
	have  int
	rest  uint32 // bytes of the body to come
	start bool   // no byte of the body has come yet
	lost  bool   // the stream is invalid
}

func (h *headers) walk(b []byte) {
	for len(b) > 0 && !h.lost {
		if h.rest > 0 {
			if h.start {
				h.start = false
				h.each(h.head[0], b[0])
			}
			n := min(uint64(h.rest), uint64(len(b)))
			h.rest -= uint32(n)
			b = b[n:]
			continue
		}
		n := copy(h.head[h.have:], b)
		h.have += n
		b = b[n:]
		if h.have < wire.HeaderLen {
			return
		}
		h.have = 0
		length, ok := wire.Length(h.head[:])
		if !ok {
			h.lost = true
			return
		}
		if h.rest, h.start = length-4, length > 4; h.rest == 0 {
			h.each(h.head[0], 0)
		}
	}
}

// WatchIdle makes the session record whether it is idle. It is called before Run; goroutines then relay the session.
func (s *Session) WatchIdle() {
	w := &idleWatch{}
	w.pending.Store(1) // the end of the startup
	w.client.each = func(typ, _ byte) {
		if typ == 'Q' || typ == 'S' || typ == 'F' {
			w.pending.Add(1)
		}
	}
	w.server.each = func(typ, first byte) {
		if typ == 'Z' {
			w.idle.Store(first == 'I')
			w.pending.Add(-1)
		}
	}
	s.idle, s.toServer.headers, s.toClient.headers = w, &w.client, &w.server
}

// EndsIdle reports, once, that the session has been idle outside a transaction for that long, and should be ended. One
// goroutine calls it repeatedly.
func (s *Session) EndsIdle(limit time.Duration, now time.Time) bool {
	w := s.idle
	if w == nil || w.ended.Load() {
		return false
	}
	fromClient, fromServer := s.Bytes()
	if bytes := fromClient + fromServer; bytes != w.seen || w.since.IsZero() {
		w.seen, w.since = bytes, now
		return false
	}
	if w.pending.Load() != 0 || !w.idle.Load() || now.Sub(w.since) < limit {
		return false
	}
	w.ended.Store(true)
	return true
}

// EndedIdle reports whether EndsIdle has returned true.
func (s *Session) EndedIdle() bool { return s.idle != nil && s.idle.ended.Load() }
