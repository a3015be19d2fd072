package relay

import (
	"context"
	"net/http"
	"testing"
	"time"
)

// One check of the engines answers all requests of a second, and a client that disconnects does not affect others.
func TestReadinessIsShared(t *testing.T) {
	t.Parallel()
	looks := 0
	h := &readiness{draining: func() bool { return false }, check: func(ctx context.Context) error { looks++; return ctx.Err() }}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	h.at = time.Now().Add(time.Hour) // as if checked just now, however long the test takes
	for range 10 {
		h.ServeHTTP(discard{}, (&http.Request{}).WithContext(gone))
	}
	if looks != 0 {
		t.Errorf("%d looks within a second of the last, want 0", looks)
	}
	h.at = time.Time{}
	if err := h.current(); err != nil || looks != 1 {
		t.Errorf("%v after %d looks", err, looks)
	}
}

type discard struct{}

func (discard) Header() http.Header         { return http.Header{} }
func (discard) Write(b []byte) (int, error) { return len(b), nil }
func (discard) WriteHeader(int)             {}
