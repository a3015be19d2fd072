// Package link is the channel between the relay process and the auditor process: frames over a socket pair.
//
// It owns only the framing. A frame is a four-byte big-endian length of the bytes that follow, one byte of kind, and
// the payload. The relay sends Hello once and then Query, Pause, Deploy and Counts frames. The auditor sends Begin and
// End around every statement that it parses, and Status, Metrics, Names and Settled when they change.
package link

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
)

// Kind is the kind of a frame.
type Kind byte

const (
	Hello   Kind = 'H' // relay to auditor: the configuration with its secrets (config.Resolved), once, first
	Query   Kind = 'Q' // relay to auditor: a captured query, capture.AppendBinary
	Pause   Kind = 'P' // relay to auditor: one byte, 1 = pause replays, 0 = resume
	Counts  Kind = 'C' // relay to auditor: statements that were not sent since the last Counts, by reason, as a JSON object
	Samples Kind = 'X' // relay to auditor: a few of the statements that were not sent, as a JSON list of capture.Sample
	Deploy  Kind = 'D' // relay to auditor: the label of the engine's last deploy
	Begin   Kind = 'B' // auditor to relay: the hash of the statement that it parses next
	End     Kind = 'E' // auditor to relay: the hash of a parsed statement
	Status  Kind = 'S' // auditor to relay: view.Status as JSON
	Names   Kind = 'N' // auditor to relay: which statements to send, capture.Vocabulary as JSON
	Metrics Kind = 'M' // auditor to relay: metrics in the Prometheus text format
	Settled Kind = 'T' // auditor to relay: capture.Settled of this link, in its binary form
)

// MaxFrameBytes bounds the frames that a Reader accepts. A longer frame is an error: the peer is not a dpwatch process
// of this build.
const MaxFrameBytes = 64 << 20

// Writer writes frames. It is safe for concurrent use.
type Writer struct {
	mu  sync.Mutex // guards the order of writes, and one
	w   io.Writer
	one Batch // for Send
}

// NewWriter returns a Writer on w.
func NewWriter(w io.Writer) *Writer { return &Writer{w: w} }

// Send writes one frame with a single Write.
func (w *Writer) Send(kind Kind, payload []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.one.Add(kind, func(b []byte) []byte { return append(b, payload...) }) {
		return fmt.Errorf("link: frame %q of %d bytes is longer than %d", kind, len(payload), MaxFrameBytes)
	}
	return w.flush(&w.one)
}

// SendBatch sends and then empties the batch.
func (w *Writer) SendBatch(b *Batch) error {
	if len(b.buf) == 0 {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.flush(b)
}

func (w *Writer) flush(b *Batch) error {
	_, err := w.w.Write(b.buf)
	b.buf = b.buf[:0]
	if err != nil {
		return fmt.Errorf("link: send: %w", err)
	}
	return nil
}

// Batch holds frames to be sent with one Write.
type Batch struct{ buf []byte }

// Add appends a frame. Fill appends the payload to its argument and returns the result. False if the frame would exceed
// MaxFrameBytes; the batch is then unchanged.
func (b *Batch) Add(kind Kind, fill func([]byte) []byte) bool {
	start := len(b.buf)
	b.buf = fill(append(b.buf, 0, 0, 0, 0, byte(kind)))
	n := len(b.buf) - start - 4
	if n > MaxFrameBytes { // the reader would reject it
		b.buf = b.buf[:start]
		return false
	}
	binary.BigEndian.PutUint32(b.buf[start:], uint32(n))
	return true
}

// Len returns the size of the batch in bytes.
func (b *Batch) Len() int { return len(b.buf) }

// Reader reads frames. It is not safe for concurrent use.
type Reader struct{ r *bufio.Reader }

// NewReader returns a Reader on r.
func NewReader(r io.Reader) *Reader { return &Reader{r: bufio.NewReaderSize(r, 64<<10)} }

// Buffered reports whether bytes of the next frame have already been read from the connection.
func (r *Reader) Buffered() bool { return r.r.Buffered() > 0 }

// Next returns the next frame; the caller owns the payload. It returns io.EOF if the connection ended between frames.
func (r *Reader) Next() (Kind, []byte, error) {
	var head [5]byte
	if _, err := io.ReadFull(r.r, head[:1]); err != nil {
		return 0, nil, err
	}
	if _, err := io.ReadFull(r.r, head[1:]); err != nil {
		return 0, nil, fmt.Errorf("link: frame header: %w", within(err))
	}
	n := binary.BigEndian.Uint32(head[:4])
	if n == 0 || n > MaxFrameBytes {
		return 0, nil, fmt.Errorf("link: frame of %d bytes", n)
	}
	payload := make([]byte, n-1)
	if _, err := io.ReadFull(r.r, payload); err != nil {
		return 0, nil, fmt.Errorf("link: frame body: %w", within(err))
	}
	return Kind(head[4]), payload, nil
}

// within returns the error of a read within a frame: its end is unexpected there.
func within(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
