// Package link is the one channel between the relay process and the auditor process: frames over a socket pair.
//
// It owns the framing and nothing else. A frame is a big-endian length of four bytes that counts what follows,
// one byte of kind, and the payload. The relay sends Hello once and then Query and Pause frames; the auditor sends Begin
// and End around every statement that it is about to parse, and Status and Metrics when they changed.
package link

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"sync"
)

// Kind is the kind of a frame.
type Kind byte

// The kinds of a frame.
const (
	Hello   Kind = 'H' // relay to auditor: the configuration with its secrets (config.Resolved), once, first
	Query   Kind = 'Q' // relay to auditor: a captured query, capture.AppendBinary
	Pause   Kind = 'P' // relay to auditor: one byte, 1 = no replays until further notice, 0 = go on
	Begin   Kind = 'B' // auditor to relay: the hash of the statement that is parsed next
	End     Kind = 'E' // auditor to relay: the hash of a statement that is done
	Status  Kind = 'S' // auditor to relay: audit.Status as JSON
	Metrics Kind = 'M' // auditor to relay: metrics in the Prometheus text format
)

// MaxFrameBytes bounds what a Reader accepts. A longer frame is an error: the other side is not what it should be.
const MaxFrameBytes = 64 << 20

// Writer writes frames. It is safe for use by several goroutines.
type Writer struct {
	mu  sync.Mutex // guards buf and the order of writes
	buf []byte
	w   io.Writer
}

// NewWriter returns a Writer on w.
func NewWriter(w io.Writer) *Writer { return &Writer{w: w} }

// Send writes one frame with a single Write.
func (w *Writer) Send(kind Kind, payload []byte) error {
	if len(payload) >= MaxFrameBytes {
		return fmt.Errorf("link: frame %q of %d bytes is longer than %d", kind, len(payload), MaxFrameBytes)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.buf = binary.BigEndian.AppendUint32(w.buf[:0], uint32(len(payload)+1))
	w.buf = append(append(w.buf, byte(kind)), payload...)
	if _, err := w.w.Write(w.buf); err != nil {
		return fmt.Errorf("link: send %q: %w", kind, err)
	}
	return nil
}

// Batch is a number of frames that are sent with one Write.
type Batch struct{ buf []byte }

// Add appends a frame whose payload is what fill appends to the slice that it gets. False when the frame would be
// longer than MaxFrameBytes; the batch is as it was then.
func (b *Batch) Add(kind Kind, fill func([]byte) []byte) bool {
	start := len(b.buf)
	b.buf = fill(append(b.buf, 0, 0, 0, 0, byte(kind)))
	n := len(b.buf) - start - 4
	if n > MaxFrameBytes { // the other side would refuse it
		b.buf = b.buf[:start]
		return false
	}
	binary.BigEndian.PutUint32(b.buf[start:], uint32(n))
	return true
}

// Len returns how many bytes the batch has.
func (b *Batch) Len() int { return len(b.buf) }

// SendBatch sends the frames of a batch, which is empty afterwards.
func (w *Writer) SendBatch(b *Batch) error {
	if len(b.buf) == 0 {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	_, err := w.w.Write(b.buf)
	b.buf = b.buf[:0]
	if err != nil {
		return fmt.Errorf("link: send a batch: %w", err)
	}
	return nil
}

// Reader reads frames. Not safe for use by several goroutines.
type Reader struct{ r *bufio.Reader }

// NewReader returns a Reader on r.
func NewReader(r io.Reader) *Reader { return &Reader{r: bufio.NewReaderSize(r, 64<<10)} }

// Buffered reports whether the next frame, or its beginning, has been read from the connection already.
func (r *Reader) Buffered() bool { return r.r.Buffered() > 0 }

// Next returns the next frame; the payload is the caller's. io.EOF says that the other side is gone between frames.
func (r *Reader) Next() (Kind, []byte, error) {
	var head [5]byte
	if _, err := io.ReadFull(r.r, head[:1]); err != nil {
		return 0, nil, err
	}
	if _, err := io.ReadFull(r.r, head[1:]); err != nil {
		return 0, nil, fmt.Errorf("link: frame header: %w", io.ErrUnexpectedEOF)
	}
	n := binary.BigEndian.Uint32(head[:4])
	if n == 0 || n > MaxFrameBytes {
		return 0, nil, fmt.Errorf("link: frame of %d bytes", n)
	}
	payload := make([]byte, n-1)
	if _, err := io.ReadFull(r.r, payload); err != nil {
		return 0, nil, fmt.Errorf("link: frame body: %w", io.ErrUnexpectedEOF)
	}
	return Kind(head[4]), payload, nil
}
