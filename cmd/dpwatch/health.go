package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/dpwatch/dpwatch/config"
	"github.com/dpwatch/dpwatch/internal/app"
)

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
		asked, err := target(env, f)
		if err != nil {
			return err
		}
		path, word := "/livez", "alive"
		if f.ready {
			path, word = "/readyz", "ready"
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), f.timeout)
		defer cancel()
		if err := asked.Ask(ctx, path); err != nil {
			return fmt.Errorf("not %s: %w", word, err)
		}
		_, err = fmt.Fprintln(env.Stdout, word)
		return err
	}
	return cmd
}

func target(env environment, f healthFlags) (app.Target, error) {
	switch {
	case (f.config == "") == (f.address == ""):
		return app.Target{}, errors.New("give either --config FILE or --address ADDRESS")
	case f.address != "":
		return app.ParseTarget(f.address)
	}
	data, err := app.ReadFile(f.config)
	if err != nil {
		return app.Target{}, err
	}
	admin, err := config.ParseAdmin(f.config, data, env.Getenv)
	if err != nil {
		return app.Target{}, fmt.Errorf("the configuration has faults:\n%w", err)
	}
	return app.Nearest(f.config, admin.AllListeners())
}
