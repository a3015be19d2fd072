package main

import (
	"bufio"
	"context"
	"encoding/base64"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"go.uber.org/zap"

	"github.com/dpwatch/dpwatch/internal/app/relay"
	"github.com/dpwatch/dpwatch/internal/pages"
	"github.com/dpwatch/dpwatch/internal/web"
)

// route is one route of the admin port.
type route struct{ method, path string }

// routes returns every route of the admin port, as the muxes list them. A pattern without a method gets two.
func routes(t *testing.T) (all []route) {
	t.Helper()
	shown, err := pages.New(nil, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	for _, pattern := range append(relay.Patterns(), shown.Patterns...) {
		pattern = strings.TrimSuffix(pattern, "{$}")
		if method, path, found := strings.Cut(pattern, " "); found {
			all = append(all, route{method, path})
		} else {
			all = append(all, route{http.MethodGet, pattern}, route{http.MethodPost, pattern})
		}
	}
	if len(all) < 30 {
		t.Fatalf("only %d routes: %v", len(all), all)
	}
	return all
}

// at returns the path with a value for its parameter.
func (r route) at(id string) string { return strings.ReplaceAll(r.path, "{id}", url.PathEscape(id)) }

// request sends a request to the admin port with a token and returns the status and the body. Of a stream of events,
// that is the beginning, with one event.
func (s *sidecar) request(t *testing.T, token, method, path string, form url.Values) (int, string) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	query, body := "", io.Reader(nil)
	if method == http.MethodPost {
		body = strings.NewReader(form.Encode())
	} else if form != nil {
		query = "?" + form.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://"+s.admin+path+query, body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := client.Do(req)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	defer answer.Body.Close()
	var text strings.Builder
	lines := bufio.NewReader(answer.Body)
	for {
		line, err := lines.ReadString('\n')
		text.WriteString(line)
		if err != nil || path == web.EventsPath && strings.HasPrefix(line, "data:") {
			return answer.StatusCode, text.String()
		}
	}
}

// parameters are the parameters of all routes, with a value that some route accepts.
var parameters = map[string]string{
	"engine": "", "since": "24h", "limit": "10", "cursor": "", "state": "decided", "verdict": "violation", "page": "1", "search": "people", "status": "open", "sort": "bound", "up": "1",
	"label": "", "until": "2099-12-31", "reason": "known", "done": "accept", "to": "/queries",
}

// odd are values that no parameter accepts, or that must be treated as text.
var odd = []string{
	"\x00", "a\x00b", "\xff", "\xed\xa0\x80", strings.Repeat("a", 300), "%", "-1", "99999999999999999999", "9e999", "NaN", "'", `\`, "é", "../..", "2025-99-99", "999999-01-01", "0", "abc",
	base64.RawURLEncoding.EncodeToString([]byte("true 2026-01-01T00:00:00Z \x00\xff")), base64.RawURLEncoding.EncodeToString([]byte("true 9999-12-31T23:59:59Z a")),
}

// TestOddRequests: whatever the parameters of a request are, no route answers that dpwatch is at fault.
func TestOddRequests(t *testing.T) {
	t.Parallel()
	s := startSidecar(t, "LEDGER, ADMIN ROLES")
	exec0(t, s.connect(t), "/*dp_epsilon='0.5'*/ SELECT noisy(count(*), 4) FROM people")
	var id string
	s.until(t, "an audit in the ledger", func() bool {
		if all := s.audits(t); len(all) == 1 {
			id = all[0].ID
			status, _ := s.get(t, "/api/ledger/audits/"+id)
			return status == http.StatusOK
		}
		return false
	})
	random := rand.New(rand.NewPCG(5, 6))
	for _, r := range routes(t) {
		if r.path == web.EventsPath { // it has no parameters
			continue
		}
		check := func(id string, form url.Values) {
			if status, body := s.request(t, s.token, r.method, r.at(id), form); status >= 500 {
				t.Errorf("%s %q with %q: status %d: %.300s", r.method, r.at(id), form, status, body)
			}
		}
		for _, value := range odd {
			all := url.Values{}
			for name := range parameters {
				all.Set(name, value)
			}
			check(value, all)
			if strings.Contains(r.path, "{id}") {
				check(value, nil)
			}
		}
		for range 4 {
			form := url.Values{}
			for name, usual := range parameters {
				switch random.IntN(6) {
				case 0:
					form.Set(name, odd[random.IntN(len(odd))])
				case 1, 2, 3:
					form.Set(name, usual)
				}
			}
			check(id, form)
		}
	}
}
