package relay

import (
	"slices"
	"time"
)

// lingerer is a session that ends then, unless a side has accepted something since the mark.
type lingerer struct {
	session *epollSession
	until   time.Time
	since   mark
}

// expect lets a session end at a time unless a side accepts something.
func (l *loop) expect(c *epollSession, until time.Time) {
	c.until = until
	at, _ := slices.BinarySearchFunc(l.lingering, until, func(e lingerer, t time.Time) int { return e.until.Compare(t) })
	l.lingering = slices.Insert(l.lingering, at, lingerer{c, until, c.state()})
}

// patience returns how long the session may last while no side accepts anything; 0 = without limit.
func (c *epollSession) patience() time.Duration {
	switch {
	case c.server.eof || c.server.gone || c.server.deaf:
		return c.loop.linger
	case (c.client.eof || c.client.gone) && len(c.server.pending) > 0:
		return enginePatience * c.loop.linger
	}
	return 0
}

// bound limits the rest of a session, one side of which has closed.
func (c *epollSession) bound() {
	limit := c.patience()
	if limit == 0 {
		return
	}
	if until := time.Now().Add(limit); c.until.IsZero() || until.Before(c.until) {
		c.loop.expect(c, until)
	}
}

// state returns how far both sides have accepted what was sent to them.
func (c *epollSession) state() mark {
	client, server := progress(c.client.fd), progress(c.server.fd)
	return mark{moved: c.moved, acked: client.acked + server.acked, queued: client.queued + server.queued}
}

// stalled ends the session, whose time is over.
func (c *epollSession) stalled() {
	switch {
	case len(c.client.pending) > 0:
		c.finish(&sessionError{"client", writeTo, errStalled})
	case len(c.server.pending) > 0:
		c.finish(&sessionError{"server", writeTo, errStalled})
	default: // everything was passed on, and the client has not closed
		c.finish(nil)
	}
}

// expire ends the sessions one side of which has closed and of which the other has accepted nothing within the linger
// time.
func (l *loop) expire() {
	for len(l.lingering) > 0 {
		first := l.lingering[0]
		c := first.session
		superseded := c.ended || !c.until.Equal(first.until)
		if !superseded && time.Now().Before(first.until) {
			return
		}
		l.lingering[0] = lingerer{}
		l.lingering = l.lingering[1:]
		if superseded {
			continue
		}
		c.until = time.Time{}
		switch limit := c.patience(); {
		case limit == 0:
		case c.state().after(first.since):
			l.expect(c, time.Now().Add(limit))
		default:
			c.stalled()
		}
	}
}
