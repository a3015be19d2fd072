package proxy

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime/debug"
	"sync/atomic"
)

// What a session was doing when the network failed.
const (
	readFrom = "read from"
	writeTo  = "write to"
)

// sessionError is a fault of the network: which side, doing what.
type sessionError struct {
	side, op string // "client" or "server"; readFrom or writeTo
	err      error
}

func (e *sessionError) Error() string { return fmt.Sprintf("%s %s: %v", e.op, e.side, e.err) }

func (e *sessionError) Unwrap() error { return e.err }

// ofServer reports whether the network failed on the server's side. Then the session goes on until all that the server
// said has come through, which is often why it went; what the client still sends is dropped.
func ofServer(err error) bool {
	var fault *sessionError
	return errors.As(err, &fault) && fault.side == "server"
}

// panicError is a fault in the code. It costs the connection at hand, not the process.
type panicError struct{ stack []byte }

func (e *panicError) Error() string { return "a fault in the relay" }

// contained runs f and returns its error, a panicError if it panicked.
func contained(f func() error) (err error) {
	defer func() {
		if recover() != nil {
			err = &panicError{debug.Stack()}
		}
	}()
	return f()
}

// pump carries the bytes of one direction.
type pump struct {
	src, dst         net.Conn
	srcSide, dstSide string   // "client" or "server"
	session          *tapped  // nil without capture
	walker           *walker  // nil without capture
	headers          *headers // nil unless idle sessions end
	deaf             bool     // the destination takes nothing more: what is read is dropped
	bytes            atomic.Uint64
}

// run writes first, then carries chunks until the source ends (nil) or either side fails.
func (p *pump) run(first []byte, chunks *chunkPool) error {
	if len(first) > 0 {
		if err := p.forward(first); err != nil {
			return err
		}
	}
	src := newSource(p.src, chunks)
	for {
		ended, err := p.step(src)
		if ended || err != nil {
			return err
		}
	}
}

// step carries one chunk.
func (p *pump) step(src source) (ended bool, err error) {
	chunk, readErr := src.next()
	defer src.release()
	if len(chunk) > 0 {
		if err := p.forward(chunk); err != nil {
			return false, err
		}
	}
	switch {
	case readErr == nil:
		return false, nil
	case errors.Is(readErr, io.EOF):
		return true, nil
	case errors.Is(readErr, os.ErrDeadlineExceeded): // the other side has gone, and this one has nothing more to say
		return true, nil
	}
	return false, &sessionError{p.srcSide, readFrom, readErr}
}

// drop reads on until the source ends, and passes nothing on.
func (p *pump) drop(chunks *chunkPool) error {
	p.deaf = true
	return p.run(nil, chunks)
}

// forward writes the bytes on, and only then looks at them.
func (p *pump) forward(b []byte) error {
	if p.deaf {
		return nil
	}
	if p.headers != nil && p.srcSide == "client" {
		p.headers.walk(b) // before the answer can come
	}
	if _, err := p.dst.Write(b); err != nil {
		return &sessionError{p.dstSide, writeTo, err}
	}
	p.seen(b)
	return nil
}

// seen looks at bytes that were passed on.
func (p *pump) seen(b []byte) {
	p.bytes.Add(uint64(len(b)))
	if p.headers != nil && p.srcSide == "server" {
		p.headers.walk(b)
	}
	if p.walker != nil && !p.session.stopped.Load() {
		p.walker.walk(b)
	}
}

// closeWrite passes the end of a stream on: half of the connection where it has halves.
func closeWrite(c net.Conn) {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
		return
	}
	_ = c.Close()
}
