package proxy

import (
	"net"
	"sync"
	"time"
)

// conns knows every client's connection, so that all can be ended.
type conns struct {
	mu     sync.Mutex            // guards what follows
	open   map[net.Conn]*session // nil while the startup goes on
	closed bool
}

// add takes a new connection; false when no more are taken or there are limit already.
func (c *conns) add(client net.Conn, limit int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || len(c.open) >= limit {
		return false
	}
	c.open[client] = nil
	return true
}

// attach notes the session of a connection; false when no more are taken.
func (c *conns) attach(client net.Conn, s *session) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.open[client] = s
	return true
}

// detach ends the session of a connection and adds what it carried to the totals.
func (c *conns) detach(client net.Conn, totals *counters) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.open[client]
	c.open[client] = nil
	totals.fromClients.Add(s.toServer.bytes.Load())
	totals.fromServer.Add(s.toClient.bytes.Load())
}

func (c *conns) remove(client net.Conn) {
	c.mu.Lock()
	delete(c.open, client)
	c.mu.Unlock()
}

// bytes returns what was carried until now, by the sessions that have ended and those that are open.
func (c *conns) bytes(totals *counters) (fromClients, fromServer uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	fromClients, fromServer = totals.fromClients.Load(), totals.fromServer.Load()
	for _, s := range c.open {
		if s != nil {
			fromClients += s.toServer.bytes.Load()
			fromServer += s.toClient.bytes.Load()
		}
	}
	return fromClients, fromServer
}

// interruptStartups makes the connections that have no session yet stop waiting for their clients.
func (c *conns) interruptStartups() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for client, s := range c.open {
		if s == nil {
			_ = client.SetReadDeadline(time.Now())
		}
	}
}

// closeAll ends every connection and takes no more.
func (c *conns) closeAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for client, s := range c.open {
		if s != nil {
			s.close()
		}
		_ = client.Close()
	}
}
