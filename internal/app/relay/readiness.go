package relay

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// readyFor is how long the result of one check of the engines is reused. A check connects to every engine, and requests
// for /readyz need no authorization.
const readyFor = time.Second

// readiness is the handler of /readyz: status 200 if new sessions are accepted and every engine can be reached. It does
// not depend on the auditor or the shadow database.
type readiness struct {
	draining func() bool
	check    func(context.Context) error // all requests within readyFor get the result of one call

	mu   sync.Mutex // guards the fields below; held during a check, so that only one runs
	last error
	at   time.Time // of last; zero before the first check
}

// ServeHTTP answers with status 200, or with 503 and the reason.
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

// current returns the result of the last check, or of a new one if that is older than readyFor.
func (h *readiness) current() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.at.IsZero() || time.Since(h.at) >= readyFor {
		h.last = h.check(context.Background()) // not the request's context: other requests wait for the result, too
		h.at = time.Now()
	}
	return h.last
}
