package web_test

import (
	"bufio"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/internal/web"
)

// A stream sends an event for each change, outlasts the timeouts of other requests, takes none of their places, and
// ends when the server shuts down.
func TestEvents(t *testing.T) {
	t.Parallel()
	var version atomic.Uint64
	server, err := web.New(web.Options{
		Logger: zap.NewNop(), Refused: func(string) {},
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { web.Events(w, r, version.Load) }),
	})
	if err != nil {
		t.Fatal(err)
	}
	l, done := listenAndServe(t, server)
	var streams []*bufio.Reader
	for range 20 { // more than the other requests at the same time
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+l+web.EventsPath, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = answer.Body.Close() })
		if answer.StatusCode != http.StatusOK || answer.Header.Get("Content-Type") != "text/event-stream" {
			t.Fatalf("stream: %d %q", answer.StatusCode, answer.Header.Get("Content-Type"))
		}
		body := bufio.NewReader(answer.Body)
		if line, err := body.ReadString('\n'); err != nil || !strings.HasPrefix(line, "retry:") {
			t.Fatalf("first line %q, %v", line, err)
		}
		streams = append(streams, body)
	}
	version.Add(1)
	for _, body := range streams {
		for {
			line, err := body.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			if line == "event: change\n" {
				break
			}
		}
	}
	if err := server.Shutdown(t.Context()); err != nil {
		t.Errorf("Shutdown with open streams: %v", err)
	}
	if err := <-done; err != nil {
		t.Errorf("Serve: %v", err)
	}
}

// listenAndServe returns the address, and the error with which the server ends.
func listenAndServe(t *testing.T, server *web.Server) (string, <-chan error) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close() })
	return l.Addr().String(), done
}
