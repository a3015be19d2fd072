package proxy

import (
	"net"
	"sync"
)

// chunkBytes is how much is read at once. Smaller costs more CPU on wide rows, larger gains nothing.
const chunkBytes = 32 << 10

// chunkPool holds the buffers that are read into.
type chunkPool struct{ pool sync.Pool }

func (p *chunkPool) take() *[chunkBytes]byte {
	if b, ok := p.pool.Get().(*[chunkBytes]byte); ok {
		return b
	}
	return new([chunkBytes]byte)
}

func (p *chunkPool) give(b *[chunkBytes]byte) { p.pool.Put(b) }

// source gives the chunks of one direction.
type source interface {
	// next waits for a chunk, which is valid until release. A chunk may come with an error, as from io.Reader.
	next() ([]byte, error)
	// release gives the chunk's memory back.
	release()
}

// plainSource reads any connection. It holds a buffer while it waits.
type plainSource struct {
	conn   net.Conn
	chunks *chunkPool
	chunk  *[chunkBytes]byte
}

func (s *plainSource) next() ([]byte, error) {
	s.chunk = s.chunks.take()
	n, err := s.conn.Read(s.chunk[:])
	return s.chunk[:n], err
}

func (s *plainSource) release() {
	if s.chunk != nil {
		s.chunks.give(s.chunk)
		s.chunk = nil
	}
}

// sparingBytes is what a connection that is not the kernel's own holds while it waits.
const sparingBytes = 1 << 10

// sparingSource reads a connection that cannot tell whether there is something to read, TLS say. It waits with a
// small buffer and takes a large one once that was filled.
type sparingSource struct {
	plainSource
	small  [sparingBytes]byte
	filled bool
}

func (s *sparingSource) next() (chunk []byte, err error) {
	if s.filled {
		chunk, err = s.plainSource.next()
	} else {
		var n int
		n, err = s.conn.Read(s.small[:])
		chunk = s.small[:n]
	}
	s.filled = len(chunk) >= sparingBytes
	return chunk, err
}
