package setup

import (
	"fmt"
	"io"
	"sync"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// NewLogger returns a logger that writes one JSON object per line.
func NewLogger(w io.Writer, level string) (*zap.Logger, error) {
	at, err := zapcore.ParseLevel(level)
	if err != nil {
		return nil, fmt.Errorf("log level: %w", err)
	}
	encoder := zap.NewProductionEncoderConfig()
	encoder.TimeKey, encoder.EncodeTime = "time", zapcore.RFC3339NanoTimeEncoder
	core := zapcore.NewCore(zapcore.NewJSONEncoder(encoder), zapcore.Lock(zapcore.AddSync(w)), at)
	return zap.New(core), nil
}

// logLines limits the log lines that wait to be written.
const logLines = 1024

// LogQueue writes log lines in its own goroutine, so that logging never waits for a log reader that has stopped. Lines
// that do not fit are dropped; their number is logged once the log is read again.
type LogQueue struct {
	to    io.Writer
	lines chan []byte
	done  chan struct{} // closed when everything has been written

	mu      sync.Mutex // guards the fields below
	dropped uint64
	closed  bool
}

// NewLogQueue returns a queue that writes to to. Close ends its goroutine.
func NewLogQueue(to io.Writer) *LogQueue {
	q := &LogQueue{to: to, lines: make(chan []byte, logLines), done: make(chan struct{})}
	go q.run()
	return q
}

// Write queues a copy of one line. It never blocks and never fails.
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
		_, _ = q.to.Write(line) // a log that cannot be written must not end a session
		if n := q.lost(); n > 0 {
			_, _ = fmt.Fprintf(q.to, `{"level":"warn","time":%q,"msg":"the log was not read in time: lines were dropped","lines":%d}`+"\n",
				time.Now().UTC().Format(time.RFC3339Nano), n)
		}
	}
}

// lost returns the number of lines dropped since the last call.
func (q *LogQueue) lost() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := q.dropped
	q.dropped = 0
	return n
}

// Close waits at most patience until all queued lines are written. Later lines are dropped.
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
