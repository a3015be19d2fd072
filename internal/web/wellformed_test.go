package web_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/internal/web"
)

// TestRequestsAreText: a path or a parameter that is no text is refused before a handler sees it.
func TestRequestsAreText(t *testing.T) {
	t.Parallel()
	s := serve(t, "tcp", "127.0.0.1:0", nil)
	const form, multipart = "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"
	part := func(value string) string {
		return "--x\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n" + value + "\r\n--x--\r\n"
	}
	for _, tc := range []struct {
		target, kind, body string
		want               int
	}{
		{"/a%C3%A9/b?c=%C3%A9&d", "", "", 200},
		{"/a%00", "", "", 400},
		{"/a%ff", "", "", 400},
		{"/a?b=%00", "", "", 400},
		{"/a?b=%ff", "", "", 400},
		{"/a?%00=b", "", "", 400},
		{"/a?b=%zz", "", "", 400},
		{"/a?b=c;d=e", "", "", 400},
		{"/a%zz", "", "", 400},
		{"/a", form, "b=c", 403}, // without a token nothing can be changed
		{"/a", multipart, part("c"), 403},
	} {
		method := http.MethodGet
		if tc.body != "" {
			method = http.MethodPost
		}
		if got := rawStatus(t, s.addr, method, tc.target, tc.kind, tc.body, ""); got != tc.want {
			t.Errorf("%s %s: status %d, want %d", method, tc.target, got, tc.want)
		}
	}
	operator := serve(t, "tcp", "127.0.0.1:0", func(o *web.Options) { o.TokenFile = tokenFile(t, token) })
	for body, want := range map[string]int{
		"b=c": 200, "b=%00": 400, "%ff=c": 400, "b=%zz": 400, "b=" + strings.Repeat("c", 8<<10): 413,
	} {
		if got := rawStatus(t, operator.addr, http.MethodPost, "/a", form, body, token); got != want {
			t.Errorf("%.20s: status %d, want %d", body, got, want)
		}
	}
	for value, want := range map[string]int{"c": 200, "\x00": 400, "\xff": 400, strings.Repeat("c", 8<<10): 413} {
		if got := rawStatus(t, operator.addr, http.MethodPost, "/a", multipart, part(value), token); got != want {
			t.Errorf("a part of %d bytes: status %d, want %d", len(value), got, want)
		}
	}
}

// rawStatus sends a request as it is written and returns the status.
func rawStatus(t *testing.T, addr, method, target, kind, body, bearer string) int {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: %d\r\n", method, target, len(body))
	if kind != "" {
		fmt.Fprintf(conn, "Content-Type: %s\r\n", kind)
	}
	if bearer != "" {
		fmt.Fprintf(conn, "Authorization: Bearer %s\r\n", bearer)
	}
	fmt.Fprintf(conn, "\r\n%s", body)
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatalf("%s: %v", target, err)
	}
	_ = answer.Body.Close()
	return answer.StatusCode
}
