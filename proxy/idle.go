package proxy

import (
	"encoding/binary"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
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

func newIdleWatch() *idleWatch {
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
	return w
}

// headers follows the messages of one direction over chunks of any size and reports their types and first bytes.
type headers struct {
	each  func(typ, first byte)
	head  [headerLen]byte
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
		if h.have < headerLen {
			return
		}
		h.have = 0
		length := binary.BigEndian.Uint32(h.head[1:])
		if length < 4 || length > maxMessage {
			h.lost = true
			return
		}
		if h.rest, h.start = length-4, length > 4; h.rest == 0 {
			h.each(h.head[0], 0)
		}
	}
}

// waits reports whether the session is idle outside a transaction.
func (w *idleWatch) waits() bool { return w.pending.Load() == 0 && w.idle.Load() }

// idleFor reports whether the session has been idle for that long. One goroutine calls it repeatedly.
func (w *idleWatch) idleFor(limit time.Duration, bytes uint64, now time.Time) bool {
	if bytes != w.seen || w.since.IsZero() {
		w.seen, w.since = bytes, now
		return false
	}
	return w.waits() && now.Sub(w.since) >= limit
}

// sweepIdle ends idle sessions until stop is closed.
func (s *Server) sweepIdle(stop <-chan struct{}) {
	ticker := time.NewTicker(max(s.opts.IdleTimeout/4, time.Millisecond))
	defer ticker.Stop()
	for {
		select {
		case now := <-ticker.C:
			for _, idle := range s.conns.idle(s.opts.IdleTimeout, now) {
				s.counters.idleEnded.Add(1)
				s.log.Info("idle session ended", zap.Uint64("session", idle.id))
				idle.endIdle()
			}
		case <-stop:
			return
		}
	}
}

// idle returns the sessions that have been idle for that long.
func (c *conns) idle(limit time.Duration, now time.Time) []*session {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []*session
	for _, s := range c.open {
		if s == nil || s.idle == nil || s.idle.ended.Load() {
			continue
		}
		if s.idle.idleFor(limit, s.toServer.bytes.Load()+s.toClient.bytes.Load(), now) {
			s.idle.ended.Store(true)
			out = append(out, s)
		}
	}
	return out
}

// terminate is the Terminate message of a client.
var terminate = [...]byte{'X', 0, 0, 0, 4}

// endIdle sends an error to the client, as PostgreSQL does, and Terminate to the engine, and closes the session.
func (s *session) endIdle() {
	if idleTooLong.write(s.client) {
		closeWrite(s.client)
	}
	_ = s.server.SetWriteDeadline(time.Now().Add(refusalWrite))
	_, _ = s.server.Write(terminate[:])
	s.close()
}

// endedIdle reports whether the sweep ended the session.
func (s *session) endedIdle() bool { return s.idle != nil && s.idle.ended.Load() }
