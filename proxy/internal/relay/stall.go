package relay

import (
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// enginePatience is how many times longer than for a client a session waits for a server that accepts nothing, after
// the client has closed: the server reads what the client sent before only when it has answered the statement before,
// as it would without a proxy.
const enginePatience = 10

// errStalled ends a session whose one side has closed while the other does not accept what is left for it.
var errStalled = errors.New("it accepts nothing, and the other side has closed")

// mark is how far a side has accepted what was sent to it.
type mark struct {
	moved  uint64 // bytes given to its socket
	acked  uint64 // bytes that its host has acknowledged (TCP)
	queued int    // bytes that wait in the socket
}

// after reports whether the side has accepted something since an earlier mark. A side that reads slowly has.
func (m mark) after(earlier mark) bool {
	return m.moved != earlier.moved || m.acked != earlier.acked || m.queued < earlier.queued
}

// stallWatch ends a session that goroutines relay if a write of one direction is blocked and can never matter to both
// sides again. It looks only while a write takes longer than the linger time.
type stallWatch struct {
	session *Session
	pump    *pump
	source  syscall.RawConn // sockets under the connections; nil = not known
	dest    syscall.RawConn
	linger  time.Duration
	timer   *time.Timer
	writing atomic.Bool

	mu    sync.Mutex // guards last and since
	last  mark
	since time.Time // of last; zero = the other side has not closed
}

func newStallWatch(s *Session, p *pump, linger time.Duration) *stallWatch {
	w := &stallWatch{session: s, pump: p, source: socketUnder(p.src), dest: socketUnder(p.dst), linger: linger}
	w.timer = time.AfterFunc(linger, w.check)
	w.timer.Stop()
	return w
}

// socketUnder returns the socket of a connection, or that under its wrappers; nil if there is none.
func socketUnder(c net.Conn) syscall.RawConn {
	for {
		if raw, ok := plainSocket(c); ok {
			return raw
		}
		wrapper, ok := c.(interface{ NetConn() net.Conn })
		if !ok {
			return nil
		}
		c = wrapper.NetConn()
	}
}

// write writes under the watch. A nil watch only writes.
func (w *stallWatch) write(to net.Conn, b []byte) error {
	if w != nil {
		w.writing.Store(true)
		w.timer.Reset(w.linger)
		defer func() {
			w.timer.Stop()
			w.writing.Store(false)
		}()
	}
	_, err := to.Write(b)
	return err
}

// patience returns how long the blocked write may last without progress; 0 = without limit, because both sides are
// there.
func (w *stallWatch) patience() time.Duration {
	server, client := w.source, w.dest
	if w.pump.dstSide == "server" {
		server, client = client, server
	}
	switch {
	case w.session.serverEnded.Load() || hasClosed(server):
		return w.linger
	case w.pump.dstSide == "server" && hasClosed(client):
		return enginePatience * w.linger
	}
	return 0
}

// check runs when a write has taken the linger time, and then again after each.
func (w *stallWatch) check() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.writing.Load() {
		return
	}
	limit, now := w.patience(), time.Now()
	state := progressOf(w.dest)
	state.moved = w.pump.bytes.Load()
	switch {
	case limit == 0:
		w.since = time.Time{}
	case w.since.IsZero() || state.after(w.last):
		w.last, w.since = state, now
	case now.Sub(w.since) >= limit:
		w.session.fail(&sessionError{w.pump.dstSide, writeTo, errStalled})
		return
	}
	w.timer.Reset(w.linger)
}
