package proxy

import (
	"net"
	"sync"
	"time"

	"github.com/dpwatch/dpwatch/proxy/internal/relay"
)

// conns tracks the connections of all clients, so that they can be closed.
type conns struct {
	mu     sync.Mutex                  // guards the fields below
	open   map[net.Conn]*relay.Session // nil during startup
	closed bool
}

// add adds a new connection. It returns false if the server is closing or there are limit connections already.
func (c *conns) add(client net.Conn, limit int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || len(c.open) >= limit {
		return false
	}
	c.open[client] = nil
	return true
}

// attach records the session of a connection. It returns false if the server is closing.
func (c *conns) attach(client net.Conn, s *relay.Session) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.open[client] = s
	return true
}

// detach removes the session of a connection and adds its bytes to the totals.
func (c *conns) detach(client net.Conn, totals *counters) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.open[client]
	c.open[client] = nil
	fromClient, fromServer := s.Bytes()
	totals.BytesFromClients.Add(fromClient)
	totals.BytesFromServer.Add(fromServer)
}

func (c *conns) remove(client net.Conn) {
	c.mu.Lock()
	delete(c.open, client)
	c.mu.Unlock()
}

// bytes returns the bytes relayed so far, by sessions that have ended and by open ones.
func (c *conns) bytes(totals *counters) (fromClients, fromServer uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	fromClients, fromServer = totals.BytesFromClients.Load(), totals.BytesFromServer.Load()
	for _, s := range c.open {
		if s != nil {
			up, down := s.Bytes()
			fromClients, fromServer = fromClients+up, fromServer+down
		}
	}
	return fromClients, fromServer
}

// interruptStartups ends the reads on connections that have no session yet, after a time in which what they have sent
// arrives.
func (c *conns) interruptStartups(after time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	end := time.Now().Add(after)
	for client, s := range c.open {
		if s == nil {
			_ = client.SetReadDeadline(end)
		}
	}
}

// closeAll closes every connection and rejects new ones.
func (c *conns) closeAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for client, s := range c.open {
		if s != nil {
			s.Close()
		}
		_ = client.Close()
	}
}
