package relay

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime/debug"
	"sync/atomic"

	"github.com/dpwatch/dpwatch/proxy/internal/tap"
)

// Operations for sessionError.
const (
	readFrom = "read from"
	writeTo  = "write to"
)

// sessionError is a network error: on which side, in which operation.
type sessionError struct {
	side, op string // "client" or "server"; readFrom or writeTo
	err      error
}

func (e *sessionError) Error() string { return fmt.Sprintf("%s %s: %v", e.op, e.side, e.err) }

func (e *sessionError) Unwrap() error { return e.err }

// ofServer reports whether the error occurred on the server's side. Then the session goes on until everything that the
// server sent has reached the client, which often includes the reason; what the client still sends is dropped.
func ofServer(err error) bool {
	var fault *sessionError
	return errors.As(err, &fault) && fault.side == "server"
}

// PanicError is a panic in the code. It ends one connection, not the process.
type PanicError struct{ Stack []byte }

func (e *PanicError) Error() string { return "a fault in the relay" }

// Contained runs f and returns its error, or a PanicError if it panicked.
func Contained(f func() error) (err error) {
	defer func() {
		if recover() != nil {
			err = &PanicError{debug.Stack()}
		}
	}()
	return f()
}

// pump relays the bytes of one direction.
type pump struct {
	src, dst         net.Conn
	srcSide, dstSide string      // "client" or "server"
	walker           *tap.Walker // nil without capture
	headers          *headers    // nil unless idle sessions end
	stall            *stallWatch // nil = a blocked write has no limit
	deaf             bool        // the destination accepts no more: what is read is dropped
	bytes            atomic.Uint64
}

// run writes first, then relays chunks until the source ends (nil) or either side fails.
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

// step relays one chunk.
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
	case errors.Is(readErr, os.ErrDeadlineExceeded): // the other side has closed, and this one has sent nothing more in time
		return true, nil
	}
	return false, &sessionError{p.srcSide, readFrom, readErr}
}

// drop reads until the source ends and discards the bytes.
func (p *pump) drop(chunks *chunkPool) error {
	p.deaf = true
	return p.run(nil, chunks)
}

// forward writes the bytes, and only then looks at them.
func (p *pump) forward(b []byte) error {
	if p.deaf {
		return nil
	}
	if p.headers != nil && p.srcSide == "client" {
		p.headers.walk(b) // before the answer can come
	}
	if p.walker != nil && p.srcSide == "client" {
		p.walker.Sending()
	}
	if err := p.stall.write(p.dst, b); err != nil {
		return &sessionError{p.dstSide, writeTo, err}
	}
	p.seen(b)
	return nil
}

// seen looks at forwarded bytes.
func (p *pump) seen(b []byte) {
	p.bytes.Add(uint64(len(b)))
	if p.headers != nil && p.srcSide == "server" {
		p.headers.walk(b)
	}
	if p.walker != nil {
		p.walker.Walk(b)
	}
}
