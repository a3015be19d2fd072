package app

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// logLines is how many lines of the relay's log may wait for whoever reads it.
const logLines = 1024

// LogQueue writes log lines in a goroutine of its own, so that nobody who logs waits for a reader of the log that has
// stopped. What does not fit is dropped, and the log says how much once it is read again.
type LogQueue struct {
	to    io.Writer
	lines chan []byte
	done  chan struct{} // closed when all was written

	mu      sync.Mutex // guards what follows
	dropped uint64
	closed  bool
}

func NewLogQueue(to io.Writer) *LogQueue {
	q := &LogQueue{to: to, lines: make(chan []byte, logLines), done: make(chan struct{})}
	go q.run()
	return q
}

// Write takes one line, which remains the caller's. It never waits and never fails.
func (q *LogQueue) Write(line []byte) (int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return len(line), nil
	}
	select {
	case q.lines <- append([]byte(nil), line...):
	default:
		q.dropped++
	}
	return len(line), nil
}

func (q *LogQueue) run() {
	defer close(q.done)
	for line := range q.lines {
		_, _ = q.to.Write(line) // a log that cannot be written ends no session
		if n := q.lost(); n > 0 {
			_, _ = fmt.Fprintf(q.to, `{"level":"warn","time":%q,"msg":"the log was not read in time: lines were dropped","lines":%d}`+"\n",
				time.Now().UTC().Format(time.RFC3339Nano), n)
		}
	}
}

// lost returns how many lines were dropped since it was asked last.
func (q *LogQueue) lost() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := q.dropped
	q.dropped = 0
	return n
}

// Close waits until what was logged is written, for as long as patience at most. Later lines are dropped.
func (q *LogQueue) Close(patience time.Duration) {
	q.mu.Lock()
	if !q.closed {
		q.closed = true
		close(q.lines)
	}
	q.mu.Unlock()
	select {
	case <-q.done:
	case <-time.After(patience):
	}
}
