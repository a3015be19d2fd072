package web

import "net/http"

// Mux is a [http.ServeMux] that lists its patterns, so that a test can send a request to every route.
type Mux struct {
	mux      http.ServeMux
	patterns []string
}

// Handle registers a handler for a pattern.
func (m *Mux) Handle(pattern string, h http.Handler) {
	m.patterns = append(m.patterns, pattern)
	m.mux.Handle(pattern, h)
}

// HandleFunc registers a function for a pattern.
func (m *Mux) HandleFunc(pattern string, h http.HandlerFunc) { m.Handle(pattern, h) }

// ServeHTTP passes the request to the handler of its pattern.
func (m *Mux) ServeHTTP(w http.ResponseWriter, r *http.Request) { m.mux.ServeHTTP(w, r) }

// Patterns returns all patterns, in the order in which they were registered.
func (m *Mux) Patterns() []string { return m.patterns }
