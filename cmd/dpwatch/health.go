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
		Use: "health", Short: "Check whether a running dpwatch is alive or ready, for exec probes", Args: cobra.NoArgs,
		Long: `Check whether a running dpwatch on this machine is alive (/livez) or, with --ready, whether it accepts new sessions and can
reach every engine (/readyz). Only the section admin of the configuration is read, so a probe needs no secrets.

No token is needed or sent. The certificate of a listener with TLS is not verified: an expired certificate must not make an
orchestrator restart the proxy.

Exit codes: 0 alive or ready, 1 not alive, not ready or no answer.`,
		Example: `  dpwatch health --config /etc/dpwatch/dpwatch.yaml
  dpwatch health --config /etc/dpwatch/dpwatch.yaml --ready
  dpwatch health --address 127.0.0.1:9188
  dpwatch health --address https://10.0.0.7:9188
  dpwatch health --address unix:/run/dpwatch/admin.sock`,
	}
	fs := cmd.Flags()
	fs.StringVarP(&f.config, "config", "c", "", "path of dpwatch.yaml; its section admin has the address")
	fs.StringVar(&f.address, "address", "", "host:port, unix:/path, http://host:port or https://host:port, instead of --config")
	fs.BoolVar(&f.ready, "ready", false, "check readiness instead of liveness")
	fs.DurationVar(&f.timeout, "timeout", 3*time.Second, "time limit for the answer")
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
		return app.Target{}, fmt.Errorf("the configuration is not valid:\n%w", err)
	}
	return app.Nearest(f.config, admin.AllListeners())
}
