package web

import (
	"container/list"
	"net"
	"net/http"
	"sync"
)

// limitRequests bounds the number of concurrent requests. Probes are not counted: a flood of other requests must not
// make the process look dead. Streams of events are counted by themselves, because they last as long as a page is open.
func limitRequests(next http.Handler, refused func(reason string)) http.Handler {
	requests, streams := make(chan struct{}, maxRequests), make(chan struct{}, maxStreams)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if probe(r) {
			next.ServeHTTP(w, r)
			return
		}
		slots := requests
		if r.URL.Path == EventsPath {
			slots = streams
		}
		select {
		case slots <- struct{}{}:
			defer func() { <-slots }()
			next.ServeHTTP(w, r)
		default:
			refused("busy")
			w.Header().Set("Retry-After", "1")
			http.Error(w, "dpwatch: too many requests at the same time; try again later", http.StatusServiceUnavailable)
		}
	})
}

// boundedListener closes its oldest connection when it accepts one beyond its limit, so that clients that hold
// connections open cannot block probes.
type boundedListener struct {
	net.Listener
	limit int

	mu   sync.Mutex // guards open
	open list.List  // of *boundedConn, oldest first
}

// boundConnections returns a listener with at most limit open connections.
func boundConnections(l net.Listener, limit int) net.Listener {
	return &boundedListener{Listener: l, limit: limit}
}

// Accept waits for the next connection.
func (l *boundedListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &boundedConn{Conn: conn, listener: l}
	l.mu.Lock()
	var oldest *boundedConn
	if l.open.Len() >= l.limit {
		oldest = l.open.Front().Value.(*boundedConn)
	}
	c.place = l.open.PushBack(c)
	l.mu.Unlock()
	if oldest != nil {
		_ = oldest.Close()
	}
	return c, nil
}

// boundedConn is a connection counted by its listener.
type boundedConn struct {
	net.Conn
	listener *boundedListener
	place    *list.Element
}

// Close closes the connection. Repeated calls count once.
func (c *boundedConn) Close() error {
	c.listener.mu.Lock()
	c.listener.open.Remove(c.place)
	c.listener.mu.Unlock()
	return c.Conn.Close()
}
