package capture

import (
	"context"
	"encoding/binary"
	"errors"
	"sync"

	"github.com/dpwatch/dpwatch/internal/sqltext"
)

// ErrClosed is returned by Take when the queue is closed and empty.
var ErrClosed = errors.New("capture queue is closed")

// Queue is a bounded FIFO queue of captured queries. Offer never blocks: queries that do not fit are dropped and
// counted. What was seen often is dropped first: while the queue is more than half full, it admits only few queries of
// one shape, so that a flood of some queries leaves room for others. It is safe for concurrent use.
type Queue struct {
	maxBytes int
	queries  chan Query

	mu     sync.Mutex // guards the fields below, and sending to queries
	stats  QueueStats // without Length
	shapes *shapes    // offered while the queue was more than half full; nil before
	closed bool
}

// shapes counts the offers of shapes; several shapes can share a counter.
type shapes struct {
	offers int
	seen   [1 << 16]uint8
}

// often is the number of recent offers after which a shape counts as seen often. With recent offers, a counter has 4 on
// average.
const (
	often  = 16
	recent = 4 << 16
)

// often counts an offer of a shape, and reports whether the shape was seen often.
func (s *shapes) often(sql string) bool {
	if s.offers++; s.offers == recent {
		s.offers /= 2
		for i := range s.seen {
			s.seen[i] /= 2
		}
	}
	hash := sqltext.Shape(sql)
	n := &s.seen[binary.BigEndian.Uint16(hash[:])]
	if *n >= often {
		return true
	}
	*n++
	return false
}

// NewQueue returns an empty queue for at most capacity queries of together at most maxBytes bytes (in terms of
// Query.Size). A capacity below 1 means 1, a maxBytes below 1 means no limit.
func NewQueue(capacity, maxBytes int) *Queue {
	return &Queue{maxBytes: maxBytes, queries: make(chan Query, max(capacity, 1))}
}

// Offer adds q and returns true. It drops and counts q and returns false if the queue is full, if q would exceed
// maxBytes, if the queue is half full and q's shape was seen often, or if the queue is closed. It never blocks. The
// queue then owns q.
func (c *Queue) Offer(q Query) bool {
	size := q.Size()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stats.Offered++
	if !c.closed && (c.maxBytes <= 0 || c.stats.Bytes+size <= c.maxBytes) && !c.crowded(q.SQL) {
		select {
		case c.queries <- q:
			c.stats.Bytes += size
			return true
		default:
		}
	}
	c.stats.Dropped++
	return false
}

// crowded reports whether the second half of the queue has no room for a statement, because its shape was seen often.
// The caller holds c.mu.
func (c *Queue) crowded(sql string) bool {
	if 2*len(c.queries) < cap(c.queries) && (c.maxBytes <= 0 || 2*c.stats.Bytes <= c.maxBytes) {
		return false
	}
	if c.shapes == nil {
		c.shapes = new(shapes)
	}
	return c.shapes.often(sql)
}

// Take waits for a query and removes the oldest. The caller owns it. It returns ctx's error if ctx ends first, and
// ErrClosed if the queue is closed and empty.
func (c *Queue) Take(ctx context.Context) (Query, error) {
	if err := ctx.Err(); err != nil {
		return Query{}, err
	}
	select {
	case q, ok := <-c.queries:
		if !ok {
			return Query{}, ErrClosed
		}
		c.taken(q.Size())
		return q, nil
	case <-ctx.Done():
		return Query{}, ctx.Err()
	}
}

// TakeAll removes at most max queries, oldest first, and appends them to dst. It does not wait.
func (c *Queue) TakeAll(dst []Query, max int) []Query {
	for range max {
		select {
		case q, ok := <-c.queries:
			if !ok {
				return dst
			}
			c.taken(q.Size())
			dst = append(dst, q)
		default:
			return dst
		}
	}
	return dst
}

func (c *Queue) taken(size int) {
	c.mu.Lock()
	c.stats.Bytes -= size
	c.mu.Unlock()
}

// Close makes every later Offer a drop. Take still returns the remaining queries, then ErrClosed. Close is idempotent.
func (c *Queue) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.closed = true
		close(c.queries)
	}
}

// QueueStats holds the counters of a queue since it was made, and its current content.
type QueueStats struct {
	Offered uint64 `json:"offered"` // calls of Offer
	Dropped uint64 `json:"dropped"` // of these, those that returned false
	Length  int    `json:"length"`  // queries in the queue
	Bytes   int    `json:"bytes"`   // the sum of their sizes
}

// Stats returns the queue's counters. While a query is being taken, Bytes can still include it.
func (c *Queue) Stats() QueueStats {
	c.mu.Lock()
	defer c.mu.Unlock()
	stats := c.stats
	stats.Length = len(c.queries)
	return stats
}
