package web

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/dpwatch/dpwatch/internal/reload"
)

// guard checks requests before they reach the handler.
type guard struct {
	next        http.Handler
	crossOrigin *http.CrossOriginProtection
	hosts       map[string]bool
	exposed     bool // other machines can reach the listener
	tokens      *reload.Files[tokens]
	sessions    sessions
	proxy       *ProxyLogin // nil = none
	metricsOnly bool
	refused     func(reason string)
}

func newGuard(o *Options) (*guard, error) {
	g := &guard{
		next: o.Handler, crossOrigin: http.NewCrossOriginProtection(), hosts: map[string]bool{"localhost": true},
		exposed: o.Exposed, proxy: o.ProxyLogin, metricsOnly: o.MetricsOnly, refused: o.Refused,
	}
	for _, h := range o.Hosts {
		g.hosts[hostOf(h)] = true
	}
	if o.TokenFile == "" {
		return g, nil
	}
	var err error
	g.tokens, err = reload.Load("the tokens of the admin port", []string{o.TokenFile}, o.Logger, parseTokens)
	return g, err
}

// ServeHTTP passes the request to the handler or refuses it.
func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	if probe(r) {
		g.next.ServeHTTP(w, r)
		return
	}
	refuse := func(status int, reason, text string) {
		g.refused(reason)
		http.Error(w, "dpwatch: "+text, status)
	}
	switch {
	case !g.knows(r):
		refuse(http.StatusForbidden, "host", fmt.Sprintf("the host %.100q is not served here: use the address of the listener, or add the name to admin.hosts", r.Host))
		return
	case g.crossOrigin.Check(r) != nil:
		refuse(http.StatusForbidden, "cross_origin", "requests from a web page of another origin cannot change anything")
		return
	case g.metricsOnly && r.URL.Path != "/metrics":
		refuse(http.StatusNotFound, "metrics_only", "this listener serves /livez, /readyz and /metrics")
		return
	case r.Method == http.MethodPost && r.URL.Path == "/login":
		g.login(w, r)
		return
	case r.Method == http.MethodPost && r.URL.Path == "/logout":
		g.logout(w, r)
		return
	case !changes(r) && (r.URL.Path == "/login" || strings.HasPrefix(r.URL.Path, "/static/")):
		g.next.ServeHTTP(w, r)
		return
	}
	id, ok := g.identify(r)
	switch {
	case !ok && g.tokens != nil && forPerson(r):
		g.refused("token")
		http.Redirect(w, r, "/login?"+url.Values{"to": {r.URL.RequestURI()}}.Encode(), http.StatusSeeOther)
	case !ok && g.tokens == nil:
		refuse(http.StatusUnauthorized, "token", "only the proxy of admin.proxy_login is served, with a user that has a role there")
	case !ok:
		w.Header().Set("WWW-Authenticate", `Bearer realm="dpwatch"`)
		refuse(http.StatusUnauthorized, "token", "send a token of admin.token_file: Authorization: Bearer TOKEN")
	case changes(r) && id == Identity{}:
		refuse(http.StatusForbidden, "no_token", "without a token any user of this machine could change something: set admin.token_file, "+
			"listen on unix:/path, or send the process SIGUSR1 (pause) or SIGUSR2 (resume)")
	case changes(r) && id.Roles&Operator == 0:
		refuse(http.StatusForbidden, "role", "only an operator can change something; the role here is "+id.Roles.String())
	default:
		g.next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), identityKey{}, id)))
	}
}

// forPerson reports whether a browser asks for a page to show.
func forPerson(r *http.Request) bool {
	return !changes(r) && strings.Contains(r.Header.Get("Accept"), "text/html")
}

// current returns the tokens currently in the file.
func (g *guard) current() tokens {
	ts, _ := g.tokens.Get()
	return ts
}

// knows reports whether Host names this listener. The owner of a DNS name can rebind it to any address; an IP address
// cannot be rebound. If other machines can reach the listener, possibly through a translated address, any IP address is
// accepted.
func (g *guard) knows(r *http.Request) bool {
	if overUnix(r) { // browsers cannot use Unix sockets
		return true
	}
	host := hostOf(r.Host)
	if g.hosts[host] {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && (g.exposed || ip.Unmap().IsLoopback())
}

// hostOf returns the host of host:port, of host, or of an IPv6 address in brackets, in lower case.
func hostOf(s string) string {
	if host, _, err := net.SplitHostPort(s); err == nil {
		s = host
	}
	s = strings.TrimSuffix(strings.TrimPrefix(s, "["), "]")
	s, _, _ = strings.Cut(s, "%")
	return strings.TrimSuffix(strings.ToLower(s), ".")
}

// probe reports whether a request is a liveness or readiness probe.
func probe(r *http.Request) bool {
	return !changes(r) && (r.URL.Path == "/livez" || r.URL.Path == "/readyz")
}

// changes reports whether a request may change state.
func changes(r *http.Request) bool { return r.Method != http.MethodGet && r.Method != http.MethodHead }
