package relay

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"
)

// loopSet holds the event loops of a server. Each relays many sessions on one thread.
type loopSet struct{ all []*loop }

func newLoops(n int, chunks *chunkPool, log *zap.Logger) (*loopSet, error) {
	ls := &loopSet{}
	for range n {
		l, err := newLoop(chunks, log)
		if err != nil {
			ls.stop()
			return nil, err
		}
		l.patient = runtime.GOMAXPROCS(0) > n
		ls.all = append(ls.all, l)
		go l.run()
	}
	return ls, nil
}

// stop stops the loops, whose sessions have all ended, and waits for them.
func (ls *loopSet) stop() {
	if ls == nil {
		return
	}
	for _, l := range ls.all {
		l.send(order{what: orderStop})
		<-l.stopped
	}
}

// least returns the loop with the fewest sessions.
func (ls *loopSet) least() *loop {
	best := ls.all[0]
	for _, l := range ls.all[1:] {
		if l.load.Load() < best.load.Load() {
			best = l
		}
	}
	return best
}

// loop relays sessions on one thread, bypassing Go's scheduler: it asks epoll which sockets are ready, reads a chunk,
// writes it to the other side, looks at it, and continues with the next. Non-blocking system calls are made without
// entering the scheduler; that accounts for most of a goroutine's extra cost.
//
// Sockets are level-triggered and get one chunk per turn, so that none starves the others. If a socket does not accept
// a whole chunk, the remainder is kept and its peer is not read until it is written. After a session has joined, only
// the loop's thread uses and closes its descriptors. Events of a session that has ended are recognised by their
// generation.
type loop struct {
	epoll, wake int // descriptors; wake is an eventfd
	log         *zap.Logger
	linger      time.Duration // serverGone
	chunks      *chunkPool    // for bytes that wait to be written
	stopped     chan struct{}
	load        atomic.Int64 // sessions, including those about to join

	// Used by the loop's thread only.
	chunk      [chunkBytes]byte
	events     [256]unix.EpollEvent
	count, at  int // events of this turn, and the number already handled
	sessions   []*epollSession
	free       []int32 // unused indexes of sessions
	generation int32
	lingering  []lingerer    // sessions one side of which has closed, by time
	current    *epollSession // the session being handled, which ends if the code panics
	stop       bool
	patient    bool // GOMAXPROCS leaves processors for the other goroutines while this loop blocks

	mu    sync.Mutex
	inbox []order // guarded by mu
	taken []order // used by the loop's thread only: the other list
}

// order is a request to a loop from another goroutine.
type order struct {
	what    uint8
	session *epollSession
}

const (
	orderJoin uint8 = iota
	orderKill
	orderStop
)

func newLoop(chunks *chunkPool, log *zap.Logger) (*loop, error) {
	l := &loop{chunks: chunks, log: log, linger: serverGone, stopped: make(chan struct{}), epoll: -1, wake: -1}
	var err error
	if l.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return nil, fmt.Errorf("event loop: epoll_create: %w", err)
	}
	if l.wake, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		l.closeAll()
		return nil, fmt.Errorf("event loop: eventfd: %w", err)
	}
	if err := unix.EpollCtl(l.epoll, unix.EPOLL_CTL_ADD, l.wake, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: -1}); err != nil {
		l.closeAll()
		return nil, fmt.Errorf("event loop: epoll_ctl: %w", err)
	}
	return l, nil
}

func (l *loop) closeAll() {
	for _, fd := range [...]int{l.epoll, l.wake} {
		if fd >= 0 {
			_ = unix.Close(fd)
		}
	}
}

// send sends an order to the loop.
func (l *loop) send(o order) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inbox = append(l.inbox, o)
	if len(l.inbox) == 1 {
		one := [8]byte{1, 1, 1, 1, 1, 1, 1, 1} // any number but zero, in either byte order
		_, _ = unix.Write(l.wake, one[:])
	}
}

func (l *loop) run() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(l.stopped)
	defer l.closeAll()
	for !l.stop {
		l.count, l.at = l.wait(), 0
		for l.at < l.count {
			l.turn()
		}
		l.expire()
	}
}

// hold is how long, in milliseconds, a busy loop waits for more events without entering Go's scheduler. The scheduler
// would take the loop's processor (its P) and search for other work at every query and every answer, which costs more
// than reading and writing them. Meanwhile the thread sleeps in the kernel as usual. Other goroutines need other Ps, so
// there must be some.
const hold = 2

// wait waits for events and returns their number.
func (l *loop) wait() int {
	if l.count > 0 && l.patient {
		n, _, errno := syscall.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(l.epoll), uintptr(unsafe.Pointer(&l.events[0])), uintptr(len(l.events)), hold, 0, 0)
		switch {
		case errno != 0: // a signal: the scheduler preempts the thread
			return 0
		case n > 0:
			return int(n)
		}
	}
	timeout := -1
	if len(l.lingering) > 0 {
		timeout = int(max(time.Until(l.lingering[0].until), 0)/time.Millisecond) + 1
	}
	n, err := unix.EpollWait(l.epoll, l.events[:], timeout)
	if err != nil { // a signal
		return 0
	}
	return n
}

// turn handles events until none is left or the code panics, which ends only the session being handled.
func (l *loop) turn() {
	defer l.contain()
	for l.at < l.count {
		e := &l.events[l.at]
		l.at++
		if e.Fd < 0 {
			l.execute()
			continue
		}
		place := e.Fd >> 1
		if int(place) >= len(l.sessions) {
			continue
		}
		c := l.sessions[place]
		if c == nil || c.generation != e.Pad {
			continue // it ended earlier in this turn
		}
		l.current = c
		c.event(e.Fd&1, e.Events)
	}
	l.current = nil
}

func (l *loop) contain() {
	fault := recover()
	if fault == nil {
		return
	}
	l.log.Error("a session ended by a panic in its loop", zap.Stack("stack"))
	if c := l.current; c != nil {
		l.current = nil
		c.finish(errLoopPanic)
	}
}

var errLoopPanic = errors.New("a fault in the event loop")

// execute executes the orders in the inbox.
func (l *loop) execute() {
	var count [8]byte
	_, _ = unix.Read(l.wake, count[:])
	l.mu.Lock()
	orders := l.inbox
	l.inbox = l.taken[:0]
	l.mu.Unlock()
	for i, o := range orders {
		orders[i] = order{}
		l.obey(o)
	}
	l.taken = orders[:0]
}

// obey executes one order. A panic ends only its session: those behind it in the inbox are executed.
func (l *loop) obey(o order) {
	defer l.contain()
	l.current = o.session
	switch o.what {
	case orderJoin:
		l.join(o.session)
	case orderKill:
		o.session.finish(errKilled)
	case orderStop:
		l.stop = true
	}
	l.current = nil
}

// join adds a session to the loop.
func (l *loop) join(c *epollSession) {
	if n := len(l.free); n > 0 {
		c.place, l.free = l.free[n-1], l.free[:n-1]
		l.sessions[c.place] = c
	} else {
		c.place = int32(len(l.sessions))
		l.sessions = append(l.sessions, c)
	}
	l.generation++
	c.generation, c.joined = l.generation, true
	if !c.arm(&c.client) || !c.arm(&c.server) {
		return
	}
	if len(c.first) > 0 {
		c.forward(&c.client, c.first)
		c.first = nil
	}
}

// leave removes a session that has ended.
func (l *loop) leave(c *epollSession) {
	l.sessions[c.place] = nil
	l.free = append(l.free, c.place)
	l.load.Add(-1)
}
