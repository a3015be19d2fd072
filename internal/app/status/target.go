package status

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/dpwatch/dpwatch/config"
	"github.com/dpwatch/dpwatch/internal/app/show"
)

// Target is an admin listener of a running dpwatch.
type Target struct {
	Address     config.Address
	tls         bool
	tokenFile   string // Get sends its first token; "" = none
	engine      string // the one of several engines that Get asks for; "" = none is named
	certificate string // PEM file with the certificate that Get accepts; "" = one that the system trusts
}

// Nearest returns the listener that is most likely to be reachable from this machine: a Unix socket, otherwise a
// loopback address, otherwise any. file names the configuration in errors.
func Nearest(file string, listeners []config.AdminListener) (Target, error) {
	var best Target
	rank := func(a config.Address) int {
		switch {
		case a.IsZero():
			return 0
		case a.Network == "unix":
			return 3
		case a.Loopback():
			return 2
		}
		return 1
	}
	for _, l := range listeners {
		for _, a := range l.Listen {
			if rank(a) > rank(best.Address) {
				best = Target{Address: a, tls: l.TLS != config.AdminTLS{}, tokenFile: l.TokenFile, certificate: l.TLS.Certificate}
			}
		}
	}
	if best.Address.IsZero() {
		return best, fmt.Errorf("%s has no admin.listen: set it, for example to 127.0.0.1:9188 or unix:/path", file)
	}
	return best, nil
}

// ParseTarget parses host:port, unix:/path, or a URL.
func ParseTarget(text string) (Target, error) {
	var t Target
	if scheme, rest, ok := strings.Cut(text, "://"); ok {
		u, err := url.Parse(text)
		if err != nil || scheme != "http" && scheme != "https" || u.Host == "" || u.User != nil || strings.Trim(u.Path, "/") != "" {
			return t, fmt.Errorf("--address %q: write http://host:port or https://host:port", text)
		}
		t.tls, text = scheme == "https", strings.TrimRight(rest, "/")
	}
	var err error
	if t.Address, err = config.ParseAddress(text); err != nil {
		return t, fmt.Errorf("--address: %w", err)
	}
	if t.Address.IsZero() {
		return t, errors.New("--address is empty: write host:port or unix:/path")
	}
	return t, nil
}

// WithToken returns the same listener, asked with the first token of a file.
func (t Target) WithToken(file string) Target {
	t.tokenFile = file
	return t
}

// ForEngine returns the same listener, asked for one of several engines; "" = none is named.
func (t Target) ForEngine(name string) Target {
	t.engine = name
	return t
}

// maxErrorText limits the displayed part of an answer, in bytes.
const maxErrorText = 512

// Ask returns nil if the listener answers a GET of path with status 200. It sends no token and accepts any certificate.
func (t Target) Ask(ctx context.Context, path string) error {
	answer, err := t.request(ctx, path, "", &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: true}) //nolint:gosec // nothing secret is sent; see the command's help
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode == http.StatusOK {
		return nil
	}
	return t.refusal(answer)
}

// refusal returns an error with the beginning of an answer.
func (t Target) refusal(answer *http.Response) error {
	text, _ := io.ReadAll(io.LimitReader(answer.Body, maxErrorText))
	return fmt.Errorf("%s answers %s: %s", t.Address, answer.Status, show.Printable(strings.TrimSpace(string(text))))
}

// request sends a GET.
func (t Target) request(ctx context.Context, path, token string, config *tls.Config) (*http.Response, error) {
	network, address := t.Address.Network, t.Address.Address
	if network == "tcp" {
		var err error
		if address, err = dialable(address); err != nil {
			return nil, err
		}
	}
	client := http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			DisableKeepAlives: true,
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				var d net.Dialer
				return d.DialContext(ctx, network, address)
			},
			TLSClientConfig: config,
		},
	}
	scheme, host := "http", "localhost"
	if t.tls {
		scheme = "https"
	}
	if network == "tcp" {
		host = address
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+"://"+host+path, nil)
	if err != nil {
		return nil, err
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := client.Do(req)
	if err != nil {
		var detail *url.Error
		if errors.As(err, &detail) {
			err = detail.Err
		}
		return nil, fmt.Errorf("%s does not answer: %w", t.Address, err)
	}
	return answer, nil
}

// dialable returns the address to connect to for a listen address: 0.0.0.0 and [::] become loopback.
func dialable(address string) (string, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", err
	}
	if port == "0" {
		return "", fmt.Errorf("%s: port 0 is a different port at each start: choose a port, or use --address", address)
	}
	ip, err := netip.ParseAddr(host)
	switch {
	case host == "" || err == nil && ip == netip.IPv4Unspecified():
		host = "127.0.0.1"
	case err == nil && ip.IsUnspecified():
		host = "::1"
	}
	return net.JoinHostPort(host, port), nil
}
