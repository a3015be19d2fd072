package relay

import (
	"net"
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// epollSession is an epoll session, which a loop relays. Except for kill and relay, only the loop's thread may use it.
type epollSession struct {
	loop           *loop
	session        *Session
	client, server leg
	first          []byte        // to be written to the server first
	done           chan struct{} // closed at the end, after both descriptors

	place, generation int32
	joined, ended     bool
	until             time.Time // when the session ends unless a side accepts something; zero = both sides are there
	moved             uint64    // bytes that sockets accepted
}

// leg is one of a session's two sockets.
type leg struct {
	fd      int
	bit     int32 // 0 client, 1 server
	peer    *leg
	read    *pump  // the direction whose source is this socket
	armed   uint32 // the registered epoll events; 0 = not in the set
	pending []byte // still to be written here
	chunk   *[chunkBytes]byte
	eof     bool // nothing more is read from this socket
	shut    bool // nothing more is written to this socket
	deaf    bool // the server accepts no more: bytes from the client are dropped, bytes from the server still go on
	gone    bool // the other end has closed, although not everything that it sent has been read
}

// errKilled ends a session that is closed by force.
var errKilled = &sessionError{"client", readFrom, net.ErrClosed}

// relay moves a session's two connections to a loop, which writes first to the server before it relays anything else.
// Ended is closed at the session's end. False if they are not both plain sockets, or if no descriptors are left; the
// connections are then unchanged.
func (ls *loopSet) relay(s *Session, first []byte) (ended <-chan struct{}, ok bool) {
	if ls == nil || len(first) > chunkBytes {
		return nil, false
	}
	client, ok := plainSocket(s.Client)
	if !ok {
		return nil, false
	}
	server, ok := plainSocket(s.Server)
	if !ok {
		return nil, false
	}
	c := &epollSession{session: s, first: first, done: make(chan struct{})}
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.client.fd = duplicate(client); c.client.fd < 0 {
		return nil, false
	}
	if c.server.fd = duplicate(server); c.server.fd < 0 {
		_ = unix.Close(c.client.fd)
		return nil, false
	}
	// The duplicates refer to the same sockets. Closing the originals removes them from Go's poller and does not close
	// the sockets.
	_ = s.Client.Close()
	_ = s.Server.Close()
	c.client.peer, c.server.peer = &c.server, &c.client
	c.client.read, c.server.read = &s.toServer, &s.toClient
	c.server.bit = 1
	c.loop = ls.least()
	c.loop.load.Add(1)
	s.kill = c.kill
	c.loop.send(order{orderJoin, c})
	return c.done, true
}

// duplicate returns another descriptor of the same socket, -1 if none is available.
func duplicate(raw syscall.RawConn) int {
	fd := -1
	err := raw.Control(func(old uintptr) {
		var err error
		if fd, err = unix.FcntlInt(old, unix.F_DUPFD_CLOEXEC, 0); err != nil {
			fd = -1
		}
	})
	if err != nil {
		return -1
	}
	return fd
}

func (c *epollSession) kill() { c.loop.send(order{orderKill, c}) }

// event handles the epoll events of one socket. The next read or write shows whether the connection failed or ended.
func (c *epollSession) event(bit int32, events uint32) {
	l := &c.client
	if bit == 1 {
		l = &c.server
	}
	const fault = unix.EPOLLERR | unix.EPOLLHUP
	if events&(unix.EPOLLOUT|fault) != 0 && len(l.pending) > 0 {
		c.flush(l)
	}
	if events&(unix.EPOLLIN|fault) != 0 && l.armed&unix.EPOLLIN != 0 && !c.ended {
		c.receive(l)
	}
	if events&(unix.EPOLLRDHUP|fault) != 0 && l.armed&unix.EPOLLRDHUP != 0 && !c.ended {
		l.gone = true
		if c.arm(l) {
			c.bound()
		}
	}
}

// receive reads a chunk and forwards it.
func (c *epollSession) receive(from *leg) {
	chunk := &c.loop.chunk
	n, errno := call(unix.SYS_READ, from.fd, chunk[:])
	switch {
	case errno == unix.EAGAIN:
	case errno != 0 && from == &c.server: // everything that it sent before has been read
		c.lost(readFrom, "read", errno)
		if !c.ended {
			c.end(from)
		}
	case errno != 0:
		c.finish(&sessionError{"client", readFrom, os.NewSyscallError("read", errno)})
	case n == 0:
		c.end(from)
	default:
		c.forward(from, chunk[:n])
	}
}

// end marks the end of the stream from this socket, and passes it on once everything is written.
func (c *epollSession) end(from *leg) {
	from.eof = true
	if len(from.peer.pending) == 0 {
		c.shut(from.peer)
	}
	if !c.ended && c.arm(from) {
		c.bound()
	}
}

// lost handles a failed read from or write to the server. The session goes on until everything that the server sent has
// reached the client, which often includes the reason; what the client still sends is dropped.
func (c *epollSession) lost(op, name string, errno syscall.Errno) {
	server := &c.server
	c.session.note(&sessionError{"server", op, os.NewSyscallError(name, errno)})
	server.deaf = true
	c.release(server)
	if c.client.eof && !server.shut {
		c.shut(server)
	}
	if !c.ended && c.arm(server) && c.arm(&c.client) {
		c.bound()
	}
}

// forward writes the bytes, and only then looks at them.
func (c *epollSession) forward(from *leg, b []byte) {
	to := from.peer
	if to.deaf {
		return
	}
	n, errno := call(unix.SYS_WRITE, to.fd, b)
	switch {
	case errno == unix.EAGAIN:
		n = 0
	case errno != 0:
		c.writeFailed(to, errno)
		return
	}
	c.moved += uint64(n)
	if n < len(b) {
		c.hold(to, b[n:])
		if !c.arm(to) || !c.arm(from) {
			return
		}
		c.bound()
	}
	from.read.seen(b)
}

// hold keeps the bytes that a socket did not accept.
func (c *epollSession) hold(to *leg, b []byte) {
	to.chunk = c.loop.chunks.take()
	to.pending = to.chunk[:copy(to.chunk[:], b)]
}

// flush writes pending bytes, and resumes reading from the peer when all are written.
func (c *epollSession) flush(to *leg) {
	n, errno := call(unix.SYS_WRITE, to.fd, to.pending)
	switch {
	case errno == unix.EAGAIN:
		return
	case errno != 0:
		c.writeFailed(to, errno)
		return
	}
	c.moved += uint64(n)
	if to.pending = to.pending[n:]; len(to.pending) > 0 {
		return
	}
	c.release(to)
	if to.peer.eof {
		c.shut(to)
	}
	if !c.ended && c.arm(to) {
		c.arm(to.peer)
	}
}

func (c *epollSession) release(l *leg) {
	if l.chunk != nil {
		c.loop.chunks.give(l.chunk)
	}
	l.chunk, l.pending = nil, nil
}

// shut passes the end of a stream on, and ends the session if it was the second one.
func (c *epollSession) shut(to *leg) {
	_ = unix.Shutdown(to.fd, unix.SHUT_WR)
	to.shut = true
	if to.peer.shut {
		c.finish(nil)
	}
}

// arm registers the events that a socket waits for. One that is not read, because the other side does not accept more,
// waits for the end of its connection; after that it is removed from the epoll set, because errors and hang-ups are
// reported for every member. False if the session ended because of an error.
func (c *epollSession) arm(l *leg) bool {
	want := uint32(0)
	switch {
	case l.eof:
	case len(l.peer.pending) == 0:
		want |= unix.EPOLLIN
	case !l.gone:
		want |= unix.EPOLLRDHUP
	}
	if len(l.pending) > 0 {
		want |= unix.EPOLLOUT
	}
	if want == l.armed {
		return true
	}
	op := unix.EPOLL_CTL_MOD
	switch uint32(0) {
	case want:
		op = unix.EPOLL_CTL_DEL
	case l.armed:
		op = unix.EPOLL_CTL_ADD
	}
	event := unix.EpollEvent{Events: want, Fd: c.place<<1 | l.bit, Pad: c.generation}
	if err := unix.EpollCtl(c.loop.epoll, op, l.fd, &event); err != nil {
		c.finish(os.NewSyscallError("epoll_ctl", err))
		return false
	}
	l.armed = want
	return true
}

// writeFailed handles a failed write: to the client it ends the session.
func (c *epollSession) writeFailed(to *leg, errno syscall.Errno) {
	if to == &c.server {
		c.lost(writeTo, "write", errno)
		return
	}
	c.finish(&sessionError{"client", writeTo, os.NewSyscallError("write", errno)})
}

// finish ends the session with err, nil if both sides had closed. It is idempotent.
func (c *epollSession) finish(err error) {
	if c.ended {
		return
	}
	c.ended = true
	for _, l := range [...]*leg{&c.client, &c.server} {
		if l.armed != 0 { // closing is not enough while a fork holds a copy of the descriptor
			_ = unix.EpollCtl(c.loop.epoll, unix.EPOLL_CTL_DEL, l.fd, nil)
		}
		l.armed = 0
		_ = unix.Close(l.fd)
		c.release(l)
	}
	if c.joined {
		c.loop.leave(c)
	}
	c.session.note(err)
	close(c.done)
}

// call reads or writes without blocking and without entering Go's scheduler.
func call(trap uintptr, fd int, b []byte) (int, syscall.Errno) {
	for {
		n, _, errno := syscall.RawSyscall(trap, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
		if errno != unix.EINTR {
			return int(n), errno
		}
	}
}
