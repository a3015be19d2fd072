package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/dpwatch/dpwatch/internal/app/status"
)

func healthCommand(env environment) *cobra.Command {
	var f adminFlags
	var ready bool
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
	f.add(cmd, 3*time.Second, false)
	cmd.Flags().BoolVar(&ready, "ready", false, "check readiness instead of liveness")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		asked, err := f.target(env, status.Nearest)
		if err != nil {
			return err
		}
		path, word := "/livez", "alive"
		if ready {
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
