package main

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
	"time"

	"github.com/spf13/cobra"

	"github.com/dpwatch/dpwatch/config"
)

// healthFlags are the flags of dpwatch health.
type healthFlags struct {
	config  string
	address string
	ready   bool
	timeout time.Duration
}

func healthCommand(env environment) *cobra.Command {
	var f healthFlags
	cmd := &cobra.Command{
		Use: "health", Short: "Ask a running dpwatch whether it is alive, or ready: for exec probes", Args: cobra.NoArgs,
		Long: `Ask a running dpwatch on this machine whether it is alive (/livez) or, with --ready, whether it takes new sessions and reaches
every engine (/readyz). Of the configuration only the section admin is read, so that a probe needs none of the secrets.

Neither question needs a token and none is sent, so the certificate of a listener with TLS is not verified: a certificate that
has ended must not make an orchestrator restart the proxy.

Exit codes: 0 alive or ready, 1 not, or dpwatch does not answer.`,
		Example: `  dpwatch health --config /etc/dpwatch/dpwatch.yaml
  dpwatch health --config /etc/dpwatch/dpwatch.yaml --ready
  dpwatch health --address 127.0.0.1:9188
  dpwatch health --address https://10.0.0.7:9188
  dpwatch health --address unix:/run/dpwatch/admin.sock`,
	}
	fs := cmd.Flags()
	fs.StringVarP(&f.config, "config", "c", "", "path of the dpwatch.yaml whose admin section names the address")
	fs.StringVar(&f.address, "address", "", "host:port, unix:/path, http://host:port or https://host:port, instead of --config")
	fs.BoolVar(&f.ready, "ready", false, "ask whether it is ready, too")
	fs.DurationVar(&f.timeout, "timeout", 3*time.Second, "how long the answer may take")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		target, err := healthTargetOf(env, f)
		if err != nil {
			return err
		}
		path, word := "/livez", "alive"
		if f.ready {
			path, word = "/readyz", "ready"
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), f.timeout)
		defer cancel()
		if err := target.ask(ctx, path); err != nil {
			return fmt.Errorf("not %s: %w", word, err)
		}
		_, err = fmt.Fprintln(env.Stdout, word)
		return err
	}
	return cmd
}

// healthTarget is an admin listener of a running dpwatch.
type healthTarget struct {
	address config.Address
	tls     bool
}

func healthTargetOf(env environment, f healthFlags) (healthTarget, error) {
	switch {
	case (f.config == "") == (f.address == ""):
		return healthTarget{}, errors.New("give either --config FILE or --address ADDRESS")
	case f.address != "":
		return parseHealthTarget(f.address)
	}
	data, err := readConfig(f.config)
	if err != nil {
		return healthTarget{}, err
	}
	admin, err := config.ParseAdmin(f.config, data, env.Getenv)
	if err != nil {
		return healthTarget{}, fmt.Errorf("the configuration has faults:\n%w", err)
	}
	return nearest(f.config, admin.AllListeners())
}

// nearest returns the listener that is least likely to be out of reach or busy: a Unix socket, then a loopback address, then any.
func nearest(file string, listeners []config.AdminListener) (healthTarget, error) {
	var best healthTarget
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
			if rank(a) > rank(best.address) {
				best = healthTarget{address: a, tls: l.TLS != config.AdminTLS{}}
			}
		}
	}
	if best.address.IsZero() {
		return best, fmt.Errorf("%s has no admin.listen: set it, 127.0.0.1:9188, say, or unix:/path", file)
	}
	return best, nil
}

// parseHealthTarget reads host:port, unix:/path, or a URL.
func parseHealthTarget(text string) (healthTarget, error) {
	var t healthTarget
	if scheme, rest, ok := strings.Cut(text, "://"); ok {
		u, err := url.Parse(text)
		if err != nil || scheme != "http" && scheme != "https" || u.Host == "" || u.User != nil || strings.Trim(u.Path, "/") != "" {
			return t, fmt.Errorf("--address %q: write http://host:port or https://host:port", text)
		}
		t.tls, text = scheme == "https", strings.TrimRight(rest, "/")
	}
	var err error
	if t.address, err = config.ParseAddress(text); err != nil {
		return t, fmt.Errorf("--address: %w", err)
	}
	if t.address.IsZero() {
		return t, errors.New("--address is empty: write host:port or unix:/path")
	}
	return t, nil
}

// maxHealthAnswer is how much of a refusal is shown.
const maxHealthAnswer = 512

// ask returns nil if the listener answers 200.
func (t healthTarget) ask(ctx context.Context, path string) error {
	network, address := t.address.Network, t.address.Address
	if network == "tcp" {
		var err error
		if address, err = dialable(address); err != nil {
			return err
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
			TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: true}, //nolint:gosec // nothing secret is sent; see the command's help
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
		return err
	}
	answer, err := client.Do(req)
	if err != nil {
		var detail *url.Error
		if errors.As(err, &detail) {
			err = detail.Err
		}
		return fmt.Errorf("%s does not answer: %w", t.address, err)
	}
	defer answer.Body.Close()
	if answer.StatusCode == http.StatusOK {
		return nil
	}
	text, _ := io.ReadAll(io.LimitReader(answer.Body, maxHealthAnswer))
	return fmt.Errorf("%s answers %s: %s", t.address, answer.Status, strings.TrimSpace(string(text)))
}

// dialable returns where to connect for an address to listen on: 0.0.0.0 and [::] stand for this machine.
func dialable(address string) (string, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", err
	}
	if port == "0" {
		return "", fmt.Errorf("%s: port 0 is another port at each start: choose one, or use --address", address)
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
