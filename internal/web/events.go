package web

import (
	"fmt"
	"net/http"
	"time"
)

// EventsPath is the path of the stream of events.
const EventsPath = "/events"

type closingKey struct{}

// Intervals of Events.
const (
	eventInterval = time.Second      // between two looks at the version
	beatInterval  = 15 * time.Second // between two lines without an event, which show that the connection is alive
)

// Events sends a server-sent event "change" whenever version returns another number, until the client leaves or the
// server shuts down.
func Events(w http.ResponseWriter, r *http.Request, version func() uint64) {
	control := http.NewResponseController(w)
	closing, _ := r.Context().Value(closingKey{}).(<-chan struct{})
	w.Header().Set("Content-Type", "text/event-stream")
	if control.SetReadDeadline(time.Time{}) != nil {
		http.Error(w, "dpwatch: this connection cannot stream events", http.StatusInternalServerError)
		return
	}
	send := func(text string) bool {
		if control.SetWriteDeadline(time.Now().Add(writeTimeout)) != nil {
			return false
		}
		_, err := fmt.Fprint(w, text)
		return err == nil && control.Flush() == nil
	}
	look := time.NewTicker(eventInterval)
	defer look.Stop()
	last, sent := version(), time.Now()
	if !send("retry: 3000\n\n") {
		return
	}
	for {
		select {
		case <-r.Context().Done():
			return
		case <-closing:
			return
		case <-look.C:
		}
		switch now := version(); {
		case now != last:
			last, sent = now, time.Now()
			if !send(fmt.Sprintf("event: change\ndata: %d\n\n", now)) {
				return
			}
		case time.Since(sent) > beatInterval:
			sent = time.Now()
			if !send(":\n\n") {
				return
			}
		}
	}
}
