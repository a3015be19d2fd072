package capture

import (
	"context"
	"errors"
	"sync"
)

// ErrClosed is what Take returns when the queue was closed and nothing is left in it.
var ErrClosed = errors.New("capture queue is closed")

// Queue is a bounded first-in-first-out queue of captured queries. Putting in never blocks: what does not
// fit is dropped and counted. It is safe for any number of concurrent callers.
type Queue struct {
	maxBytes int
	ready    chan struct{} // holds one token while the queue may have something, or is closed

	mu      sync.Mutex // guards what follows
	ring    []Query
	head    int
	n       int
	bytes   int
	offered uint64
	dropped uint64
	closed  bool
}

// NewQueue returns an empty queue for at most capacity queries that together hold at most maxBytes bytes
// (as Query.Size counts them). Values below 1 mean 1 for capacity and no limit for maxBytes.
func NewQueue(capacity, maxBytes int) *Queue {
	return &Queue{maxBytes: maxBytes, ring: make([]Query, max(capacity, 1)), ready: make(chan struct{}, 1)}
}

// Offer puts q in and returns true, or drops and counts it and returns false: when the queue is full, when
// q would take it over its bytes, or when it is closed. It never blocks. The queue owns q afterwards.
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

// Take waits for a query and takes the oldest out. The caller owns it. It returns ctx's error when ctx ends
// first, and ErrClosed when the queue is closed and empty.
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
			c.signal() // for the next one who waits
			return Query{}, ErrClosed
		}
		select {
		case <-c.ready:
		case <-ctx.Done():
			return Query{}, ctx.Err()
		}
	}
}

// TakeAll takes what is in the queue, oldest first, and appends it to dst: at most max queries. It does not wait.
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

// pop takes the oldest query out. The caller holds mu, and there is one.
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

// Close makes every later Offer a drop. Take still gives what is in the queue, then ErrClosed.
// Closing twice is harmless.
func (c *Queue) Close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.signal()
}

// QueueStats is what a queue counted since it was made, and what it holds now.
type QueueStats struct {
	Offered uint64 `json:"offered"` // calls of Offer
	Dropped uint64 `json:"dropped"` // of them, those that returned false
	Length  int    `json:"length"`  // queries in the queue
	Bytes   int    `json:"bytes"`   // their sizes, summed
}

// Stats returns the queue's counters, all of one moment.
func (c *Queue) Stats() QueueStats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return QueueStats{Offered: c.offered, Dropped: c.dropped, Length: c.n, Bytes: c.bytes}
}
