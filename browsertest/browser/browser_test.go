package browser_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/browsertest/browser"
	"github.com/dpwatch/dpwatch/internal/eventually"
	"github.com/dpwatch/dpwatch/internal/longtest"
)

// A page with every fault that must be noticed.
const broken = `<!DOCTYPE html><html><head><title>x</title><script>console.error("broken")</script><script>throw new Error("thrown")</script>
<script src="https://elsewhere.invalid/x.js"></script></head><body><img src="/missing.png"><p style="width: 3000px">wide</p></body></html>`

const sound = `<!DOCTYPE html><html lang="en"><head><meta name="viewport" content="width=device-width"><title>Sound</title></head>
<body><main><h1>Sound</h1><p>Text</p></main></body></html>`

// What the tests of pages rely on: faults are noticed, and a sound page has none.
func TestNotices(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	browser.NeedAxe(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/broken":
			w.Header().Set("Content-Security-Policy", "default-src 'self' 'unsafe-inline'")
			_, _ = w.Write([]byte(broken))
		case "/sound":
			_, _ = w.Write([]byte(sound))
		case "/favicon.ico":
			w.WriteHeader(http.StatusNoContent)
		default:
			http.NotFound(w, r)
		}
	}))
	defer server.Close()
	b := browser.Open(t)
	b.Go(server.URL + "/sound")
	if axe, wide, faults := b.Axe(), b.Overflow(), b.Faults(); len(axe) > 0 || wide != "" || len(faults) > 0 || b.Text("h1") != "Sound" {
		t.Errorf("a sound page: axe %q, overflow %q, faults %q", axe, wide, faults)
	}
	b.Go(server.URL + "/broken")
	axe, wide := strings.Join(b.Axe(), "\n"), b.Overflow()
	for _, want := range []string{"console: \"broken\"", "thrown", "Content Security Policy", "404"} { // reported while the page goes on
		eventually.True(t, "the fault "+want, func() bool { return strings.Contains(strings.Join(b.Faults(), "\n"), want) })
	}
	for _, want := range []string{"html-has-lang", "image-alt"} {
		if !strings.Contains(axe, want) {
			t.Errorf("axe has not noticed %s: %s", want, axe)
		}
	}
	if wide == "" {
		t.Error("the overflow is not noticed")
	}
	for _, text := range []string{"broken", "thrown", "Content Security Policy", "404", "elsewhere.invalid"} {
		b.Expect(text)
	}
}
