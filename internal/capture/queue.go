package capture

import (
	"context"
	"errors"
	"sync"
)

// ErrClosed is returned by Take when the queue is closed and empty.
var ErrClosed = errors.New("capture queue is closed")

// Queue is a bounded FIFO queue of captured queries. Offer never blocks: queries that do not fit are dropped and counted. It
// is safe for concurrent use.
type Queue struct {
	maxBytes int
	ready    chan struct{} // holds a token while the queue is not empty or is closed

	mu      sync.Mutex // guards the fields below
	ring    []Query
	head    int
	n       int
	bytes   int
	offered uint64
	dropped uint64
	closed  bool
}

// NewQueue returns an empty queue for at most capacity queries of together at most maxBytes bytes (in terms of Query.Size).
// A capacity below 1 means 1, a maxBytes below 1 means no limit.
func NewQueue(capacity, maxBytes int) *Queue {
	return &Queue{maxBytes: maxBytes, ring: make([]Query, max(capacity, 1)), ready: make(chan struct{}, 1)}
}

// Offer adds q and returns true. It drops and counts q and returns false if the queue is full, if q would exceed maxBytes,
// or if the queue is closed. It never blocks. The queue then owns q.
func (c *Queue) Offer(q Query) bool {
	size := q.Size()
	if !c.put(q, size) {
		return false
	}
	c.signal()
	return true
}

func (c *Queue) put(q Query, size int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.offered++
	if c.closed || c.n == len(c.ring) || (c.maxBytes > 0 && c.bytes+size > c.maxBytes) {
		c.dropped++
		return false
	}
	c.ring[(c.head+c.n)%len(c.ring)] = q
	c.n++
	c.bytes += size
	return true
}

// Take waits for a query and removes the oldest. The caller owns it. It returns ctx's error if ctx ends first, and ErrClosed
// if the queue is closed and empty.
func (c *Queue) Take(ctx context.Context) (Query, error) {
	for {
		if err := ctx.Err(); err != nil {
			return Query{}, err
		}
		q, ok, closed := c.take()
		switch {
		case ok:
			return q, nil
		case closed:
			c.signal() // for the next waiting caller
			return Query{}, ErrClosed
		}
		select {
		case <-c.ready:
		case <-ctx.Done():
			return Query{}, ctx.Err()
		}
	}
}

// TakeAll removes at most max queries, oldest first, and appends them to dst. It does not wait.
func (c *Queue) TakeAll(dst []Query, max int) []Query {
	c.mu.Lock()
	defer c.mu.Unlock()
	for range min(max, c.n) {
		dst = append(dst, c.pop())
	}
	if c.n > 0 || c.closed {
		c.signal()
	}
	return dst
}

// pop removes the oldest query. The caller holds mu, and the queue is not empty.
func (c *Queue) pop() Query {
	q := c.ring[c.head]
	c.ring[c.head] = Query{}
	c.head = (c.head + 1) % len(c.ring)
	c.n--
	c.bytes -= q.Size()
	return q
}

func (c *Queue) take() (q Query, ok, closed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == 0 {
		return Query{}, false, c.closed
	}
	q = c.pop()
	if c.n > 0 {
		c.signal()
	}
	return q, true, false
}

func (c *Queue) signal() {
	select {
	case c.ready <- struct{}{}:
	default:
	}
}

// Close makes every later Offer a drop. Take still returns the remaining queries, then ErrClosed. Close is idempotent.
func (c *Queue) Close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.signal()
}

// QueueStats holds the counters of a queue since it was made, and its current content.
type QueueStats struct {
	Offered uint64 `json:"offered"` // calls of Offer
	Dropped uint64 `json:"dropped"` // of these, those that returned false
	Length  int    `json:"length"`  // queries in the queue
	Bytes   int    `json:"bytes"`   // the sum of their sizes
}

// Stats returns a consistent snapshot of the queue's counters.
func (c *Queue) Stats() QueueStats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return QueueStats{Offered: c.offered, Dropped: c.dropped, Length: c.n, Bytes: c.bytes}
}
