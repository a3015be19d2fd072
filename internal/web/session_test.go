package web_test

import (
	"net/http"
	"net/http/cookiejar"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/internal/web"
)

// whoami answers with the identity of the request.
func whoami(o *web.Options) {
	o.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := web.IdentityOf(r.Context())
		_, _ = w.Write([]byte(r.Method + " " + r.URL.Path + " " + id.Name + " " + id.Roles.String()))
	})
}

// browser is a client with cookies that accepts pages. It does not follow redirects.
func browser(t *testing.T) *http.Client {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// send returns the status, the place to go to, and the body of an answer.
func send(t *testing.T, client *http.Client, method, at string, form url.Values, header ...string) (status int, location, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, at, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", "text/html")
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	answer, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var b strings.Builder
	buffer := make([]byte, 4096)
	for {
		n, err := answer.Body.Read(buffer)
		b.Write(buffer[:n])
		if err != nil {
			break
		}
	}
	return answer.StatusCode, answer.Header.Get("Location"), b.String()
}

func TestLogin(t *testing.T) {
	t.Parallel()
	file := tokenFile(t, "viewer "+token+"\nauditor,operator ada "+other)
	s := serve(t, "tcp", "127.0.0.1:0", func(o *web.Options) { whoami(o); o.TokenFile = file })
	base := "http://" + s.addr
	c := browser(t)
	if status, to, _ := send(t, c, "GET", base+"/queries?sort=bound", nil); status != http.StatusSeeOther || to != "/login?to=%2Fqueries%3Fsort%3Dbound" {
		t.Errorf("without a login: %d, to %q", status, to)
	}
	if status, _, body := send(t, c, "GET", base+"/login", nil); status != http.StatusOK || body != "GET /login  viewer" {
		t.Errorf("the form: %d %q", status, body)
	}
	for _, wrong := range []string{"", "x", token + "x", strings.ToUpper(token)} {
		if status, to, _ := send(t, c, "POST", base+"/login", url.Values{"token": {wrong}, "to": {"/queries"}}); status != http.StatusSeeOther || to != "/login?failed=1&to=%2Fqueries" {
			t.Errorf("the token %q: %d, to %q", wrong, status, to)
		}
	}
	for to, want := range map[string]string{"/queries?a=1": "/queries?a=1", "": "/", "//evil.example/": "/", "https://evil.example/": "/", `/\evil.example`: "/", "queries": "/"} {
		if status, got, _ := send(t, browser(t), "POST", base+"/login", url.Values{"token": {token}, "to": {to}}); status != http.StatusSeeOther || got != want {
			t.Errorf("to %q: %d, to %q", to, status, got)
		}
	}
	send(t, c, "POST", base+"/login", url.Values{"token": {other}})
	if status, _, body := send(t, c, "POST", base+"/api/pause", nil); status != http.StatusOK || body != "POST /api/pause ada auditor,operator" {
		t.Errorf("an operator's change: %d %q", status, body)
	}
	if status, _, body := send(t, c, "POST", base+"/api/pause", nil, "Origin", "https://evil.example"); status != http.StatusForbidden {
		t.Errorf("a change from another origin: %d %q", status, body)
	}
	viewer := browser(t)
	send(t, viewer, "POST", base+"/login", url.Values{"token": {token}})
	if status, _, body := send(t, viewer, "GET", base+"/", nil); status != http.StatusOK || body != "GET / token 1 viewer" {
		t.Errorf("a viewer: %d %q", status, body)
	}
	if status, _, body := send(t, viewer, "POST", base+"/api/pause", nil); status != http.StatusForbidden || !strings.Contains(body, "only an operator") {
		t.Errorf("a viewer's change: %d %q", status, body)
	}
	send(t, c, "POST", base+"/logout", nil)
	if status, _, _ := send(t, c, "GET", base+"/", nil); status != http.StatusSeeOther {
		t.Errorf("after the logout: %d", status)
	}
}

// Without a token file a login is refused, and not needed.
func TestLoginWithoutTokens(t *testing.T) {
	t.Parallel()
	s := serve(t, "tcp", "127.0.0.1:0", whoami)
	c := browser(t)
	for _, path := range []string{"/login", "/logout"} {
		if status, to, _ := send(t, c, "POST", "http://"+s.addr+path, url.Values{"token": {token}}); status != http.StatusSeeOther || !strings.HasPrefix(to, "/login") {
			t.Errorf("%s: %d, to %q", path, status, to)
		}
	}
	if status, _, body := send(t, c, "GET", "http://"+s.addr+"/", nil); status != http.StatusOK || body != "GET /  viewer" {
		t.Errorf("%d %q", status, body)
	}
}

// A session ends when its token is removed from the file.
func TestRevokedToken(t *testing.T) {
	t.Parallel()
	file := tokenFile(t, token+"\n"+other)
	s := serve(t, "tcp", "127.0.0.1:0", func(o *web.Options) { whoami(o); o.TokenFile = file })
	c := browser(t)
	send(t, c, "POST", "http://"+s.addr+"/login", url.Values{"token": {token}})
	if status, _, _ := send(t, c, "GET", "http://"+s.addr+"/", nil); status != http.StatusOK {
		t.Fatalf("after the login: %d", status)
	}
	write(t, file, other)
	if status, _, _ := send(t, c, "GET", "http://"+s.addr+"/", nil); status != http.StatusSeeOther {
		t.Errorf("after the token was removed: %d", status)
	}
}

func TestProxyLogin(t *testing.T) {
	t.Parallel()
	login := web.ProxyLogin{
		Addresses: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Header: "X-User",
		Viewers: []string{"*"}, Auditors: []string{"ada"}, Operators: []string{"grace"},
	}
	s := serve(t, "tcp", "127.0.0.1:0", func(o *web.Options) { whoami(o); o.ProxyLogin = &login })
	at := "http://" + s.addr + "/api/status"
	for name, want := range map[string]string{"ada": "ada auditor", "grace": "grace operator", "someone": "someone viewer"} {
		if status, _, body := send(t, browser(t), "GET", at, nil, "X-User", name); status != http.StatusOK || body != "GET /api/status "+want {
			t.Errorf("%s: %d %q", name, status, body)
		}
	}
	if status, _, _ := send(t, browser(t), "GET", at, nil); status != http.StatusUnauthorized {
		t.Errorf("without the header: %d", status)
	}
	if status, _, _ := send(t, browser(t), "POST", at, nil, "X-User", "ada"); status != http.StatusForbidden {
		t.Errorf("a change by an auditor: %d", status)
	}
	few := login
	few.Viewers = nil
	s = serve(t, "tcp", "127.0.0.1:0", func(o *web.Options) { whoami(o); o.ProxyLogin = &few })
	if status, _, _ := send(t, browser(t), "GET", "http://"+s.addr+"/", nil, "X-User", "someone"); status != http.StatusUnauthorized {
		t.Errorf("a user without a role: %d", status)
	}
	elsewhere := login
	elsewhere.Addresses = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	s = serve(t, "tcp", "127.0.0.1:0", func(o *web.Options) { whoami(o); o.ProxyLogin = &elsewhere })
	if status, _, _ := send(t, browser(t), "GET", "http://"+s.addr+"/", nil, "X-User", "ada"); status != http.StatusUnauthorized {
		t.Errorf("from an address that is not the proxy's: %d", status)
	}
}

func TestTokenRoles(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"viewer " + token: "", "auditor,operator " + token: "", "operator ada " + token: "",
		"owner " + token: "line 1: before a token, write viewer", token + " " + other: "line 1: before a token, write viewer", "viewer a b " + token: "more than three words",
	} {
		err := web.CheckTokenFile(tokenFile(t, text))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
		if err != nil && strings.Contains(err.Error(), token[:8]) {
			t.Errorf("%q: the error contains a part of a token: %v", text, err)
		}
	}
	got, err := web.FirstToken(tokenFile(t, "\nviewer ada "+token+"\n"+other))
	if err != nil || got != token {
		t.Errorf("first token: %q, %v", got, err)
	}
	if _, err := web.FirstToken(tokenFile(t, "")); err == nil {
		t.Error("an empty file has a first token")
	}
}
