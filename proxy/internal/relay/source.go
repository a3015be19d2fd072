package relay

import (
	"net"
	"sync"
)

// chunkBytes is the read size. A smaller one costs more CPU on wide rows, a larger one gains nothing.
const chunkBytes = 32 << 10

// chunkPool pools read buffers.
type chunkPool struct{ pool sync.Pool }

func (p *chunkPool) take() *[chunkBytes]byte {
	if b, ok := p.pool.Get().(*[chunkBytes]byte); ok {
		return b
	}
	return new([chunkBytes]byte)
}

func (p *chunkPool) give(b *[chunkBytes]byte) { p.pool.Put(b) }

// source reads the chunks of one direction.
type source interface {
	// next waits for a chunk, which is valid until release. A chunk can come with an error, as from io.Reader.
	next() ([]byte, error)
	// release returns the chunk's memory.
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

// sparingBytes is the buffer size of a waiting connection that is not a plain socket.
const sparingBytes = 1 << 10

// sparingSource reads a connection without readiness notification, such as TLS. It waits with a small buffer and uses a
// large one after the small one was filled.
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
