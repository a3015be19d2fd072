package app

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"
)

// readyFor is how long one check of the engines answers /readyz: requests need no authorization, and each check connects to
// every engine.
const readyFor = time.Second

// readiness serves /readyz, which reports whether new sessions are accepted and every engine can be reached. It does not
// depend on the auditor or the shadow database.
type readiness struct {
	draining func() bool
	check    func(context.Context) error // its result is shared by all requests within readyFor

	mu   sync.Mutex // guards the fields below; held during a check, so that only one runs
	last error
	at   time.Time // zero: never checked
}

// ServeHTTP answers 200, or 503 and the reason.
func (h *readiness) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	if h.draining() {
		http.Error(w, "shutting down: sessions are draining, new ones are refused", http.StatusServiceUnavailable)
		return
	}
	if err := h.current(); err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	w.WriteHeader(http.StatusOK)
}

func (h *readiness) current() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.at.IsZero() || time.Since(h.at) >= readyFor {
		h.last = h.check(context.Background()) // not the request's context: other requests wait for the result, too
		h.at = time.Now()
	}
	return h.last
}

// reachEngines opens and closes a connection to every engine, without TLS or authentication.
func (r *Relay) reachEngines(ctx context.Context) error {
	dialer := net.Dialer{Timeout: time.Duration(r.cfg.Proxy.DialTimeout)}
	for _, one := range r.routes {
		conn, err := dialer.DialContext(ctx, one.cfg.Upstream.Network, one.cfg.Upstream.Address)
		if err != nil {
			return fmt.Errorf("the engine cannot be reached at %s", one.cfg.Upstream)
		}
		_ = conn.Close()
	}
	return nil
}
