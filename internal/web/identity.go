package web

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// Roles is what a user may do beyond reading what shows no values of rows.
type Roles uint8

const (
	// Auditor also sees values of rows and statements with their literals.
	Auditor Roles = 1 << iota
	// Operator also changes things: pauses replays, accepts violations.
	Operator
)

// roleNames are the roles as token files name them. A viewer has no further rights.
var roleNames = map[string]Roles{"viewer": 0, "auditor": Auditor, "operator": Operator}

// String returns the names of the roles, or viewer.
func (r Roles) String() string {
	var names []string
	for _, name := range []string{"auditor", "operator"} {
		if r&roleNames[name] != 0 {
			names = append(names, name)
		}
	}
	if names == nil {
		return "viewer"
	}
	return strings.Join(names, ",")
}

// parseRoles reads names that are separated by commas.
func parseRoles(text string) (roles Roles, err error) {
	for name := range strings.SplitSeq(text, ",") {
		one, known := roleNames[name]
		if !known {
			return 0, errors.New("before a token, write viewer, auditor, operator or auditor,operator, and then possibly a name") // name may be a token
		}
		roles |= one
	}
	return roles, nil
}

// Identity is who sent a request.
type Identity struct {
	Name    string // of the token or from the header of the proxy; "" = the listener needs none
	Roles   Roles
	Session bool // a browser that has logged in, and can log out
}

type identityKey struct{}

// IdentityOf returns who sent the request of a context. Without the checks of this package, that is a viewer.
func IdentityOf(ctx context.Context) Identity {
	id, _ := ctx.Value(identityKey{}).(Identity)
	return id
}

// MayReadValues reports whether the answer to the request of a context may have values of rows, and statements with
// their literals. It is the only place that decides so.
func MayReadValues(ctx context.Context) bool { return IdentityOf(ctx).Roles&Auditor != 0 }

// ProxyLogin trusts a reverse proxy that has authenticated its users.
type ProxyLogin struct {
	Addresses []netip.Prefix // of the proxy
	Header    string         // that holds the user's name
	// Viewers, Auditors and Operators are names of users, or "*" for all. Who is none of them is refused.
	Viewers, Auditors, Operators []string
}

// identify returns the user that the proxy names. false: the request does not come from the proxy, or the user has no
// role.
func (p *ProxyLogin) identify(r *http.Request) (Identity, bool) {
	if p == nil {
		return Identity{}, false
	}
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	values := r.Header.Values(p.Header)
	if err != nil || len(values) != 1 || values[0] == "" || !isText(values[0]) || !slices.ContainsFunc(p.Addresses, func(a netip.Prefix) bool { return a.Contains(peer.Addr().Unmap()) }) {
		return Identity{}, false
	}
	id := Identity{Name: values[0]}
	has := func(names []string) bool { return slices.Contains(names, "*") || slices.Contains(names, id.Name) }
	if has(p.Auditors) {
		id.Roles |= Auditor
	}
	if has(p.Operators) {
		id.Roles |= Operator
	}
	return id, id.Roles != 0 || has(p.Viewers)
}

// identify returns who sent a request; false if it must be refused.
func (g *guard) identify(r *http.Request) (Identity, bool) {
	if g.tokens != nil {
		if r.Header.Get("Authorization") != "" {
			return g.current().bearer(r)
		}
		if id, ok := g.sessions.identify(r, g.current()); ok {
			return id, true
		}
	}
	if id, ok := g.proxy.identify(r); ok {
		return id, true
	}
	switch {
	case g.tokens != nil:
		return Identity{}, false
	case overUnix(r):
		return Identity{Name: "unix socket", Roles: Auditor | Operator}, true
	}
	return Identity{}, g.proxy == nil
}

func overUnix(r *http.Request) bool {
	addr, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return addr != nil && addr.Network() == "unix"
}
