package app

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"
)

// readyFor is how long one look at the engines answers /readyz: anybody may ask, and each look connects to every engine.
const readyFor = time.Second

// readiness serves /readyz: whether new sessions are taken and every engine can be reached. It does not depend on the auditor or
// the shadow database.
type readiness struct {
	draining func() bool
	check    func(context.Context) error // its result is shared by all requests of readyFor

	mu   sync.Mutex // guards what follows; held during a check, so that there is one at a time
	last error
	at   time.Time // zero: never checked
}

// ServeHTTP answers 200, or 503 and the reason.
func (h *readiness) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	if h.draining() {
		http.Error(w, "shutting down: sessions drain, new ones are refused", http.StatusServiceUnavailable)
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
		h.last = h.check(context.Background()) // not the request's context: others wait for the result as well
		h.at = time.Now()
	}
	return h.last
}

// reachEngines connects to every engine.
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
