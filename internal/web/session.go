package web

import (
	"crypto/rand"
	"crypto/sha256"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// Limits of sessions: they end with the token, with the process, and after sessionLife.
const (
	sessionLife = 12 * time.Hour
	maxSessions = 1000 // one more ends the oldest
)

// sessions are the browsers that have logged in. The zero value has none.
type sessions struct {
	mu  sync.Mutex // guards all
	all map[[sha256.Size]byte]session
}

// session is a browser that has logged in with a token.
type session struct {
	token [sha256.Size]byte
	until time.Time
}

// cookieName is the name of the cookie of this listener: browsers send a cookie to all ports of a host.
func cookieName(r *http.Request) string {
	port := ""
	if addr, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok {
		_, port, _ = net.SplitHostPort(addr.String())
	}
	if r.TLS != nil {
		return "__Host-dpwatch-" + port
	}
	return "dpwatch-" + port
}

// identify returns who has logged in with a token that is still in the file.
func (s *sessions) identify(r *http.Request, current tokens) (Identity, bool) {
	cookie, err := r.Cookie(cookieName(r))
	if err != nil {
		return Identity{}, false
	}
	s.mu.Lock()
	one, ok := s.all[sha256.Sum256([]byte(cookie.Value))]
	s.mu.Unlock()
	if !ok || time.Now().After(one.until) {
		return Identity{}, false
	}
	id, ok := current.of(one.token)
	id.Session = true
	return id, ok
}

// begin begins a session and returns the value of its cookie.
func (s *sessions) begin(token [sha256.Size]byte) string {
	secret := rand.Text()
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = map[[sha256.Size]byte]session{}
	}
	var oldest [sha256.Size]byte
	first := now.Add(sessionLife)
	for key, one := range s.all {
		if now.After(one.until) {
			delete(s.all, key)
		} else if one.until.Before(first) {
			oldest, first = key, one.until
		}
	}
	if len(s.all) >= maxSessions {
		delete(s.all, oldest)
	}
	s.all[sha256.Sum256([]byte(secret))] = session{token, now.Add(sessionLife)}
	return secret
}

func (s *sessions) end(secret string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, sha256.Sum256([]byte(secret)))
}

// login answers POST /login, whose form has a token and the path to go to: with a cookie, or with the form again.
func (g *guard) login(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxBodyBytes)
	sum := sha256.Sum256([]byte(strings.TrimSpace(r.PostFormValue("token"))))
	to := localPath(r.PostFormValue("to"))
	known := false
	if g.tokens != nil {
		_, known = g.current().of(sum)
	}
	if !known {
		g.refused("token")
		http.Redirect(w, r, "/login?"+url.Values{"failed": {"1"}, "to": {to}}.Encode(), http.StatusSeeOther)
		return
	}
	g.setCookie(w, r, g.sessions.begin(sum), int(sessionLife/time.Second))
	http.Redirect(w, r, to, http.StatusSeeOther)
}

// logout answers POST /logout.
func (g *guard) logout(w http.ResponseWriter, r *http.Request) {
	if cookie, err := r.Cookie(cookieName(r)); err == nil {
		g.sessions.end(cookie.Value)
	}
	g.setCookie(w, r, "", -1)
	http.Redirect(w, r, "/login", http.StatusSeeOther)
}

func (g *guard) setCookie(w http.ResponseWriter, r *http.Request, value string, age int) {
	http.SetCookie(w, &http.Cookie{
		Name: cookieName(r), Value: value, Path: "/", MaxAge: age, HttpOnly: true, Secure: r.TLS != nil, SameSite: http.SameSiteStrictMode,
	})
}

// localPath returns a path of this server; "/" for anything else.
func localPath(to string) string {
	u, err := url.Parse(to)
	if err != nil || u.Host != "" || u.Scheme != "" || !strings.HasPrefix(to, "/") || strings.HasPrefix(to, "//") || strings.ContainsAny(to, "\\\r\n") {
		return "/"
	}
	return to
}
