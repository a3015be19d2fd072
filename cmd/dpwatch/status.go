package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/dpwatch/dpwatch/internal/app/status"
)

// Default time limits: of the status, which can be long, and of a probe.
const (
	statusTimeout = 10 * time.Second
	probeTimeout  = 3 * time.Second
)

func statusCommand(env environment) *cobra.Command {
	var f adminFlags
	var alive, ready bool
	cmd := &cobra.Command{
		Use: "status", Short: "Show the status of a running dpwatch: its parts, coverage, audits and violations", Args: cobra.NoArgs,
		Long: `Show the status of a running dpwatch, from its admin port (admin.listen): whether the auditor, the shadow database and the ledger
work, which share of the queries is audited, what is skipped, and the violations. Only the section admin of the configuration
is read, with its token and its certificate. With --address https://..., the certificate must be one that the system trusts.

-o json writes the answer of GET /api/status unchanged.

As an exec probe, --alive asks only whether dpwatch is alive (/livez), and --ready whether it accepts new sessions and can reach every engine
(/readyz). A probe needs no secrets: no token is sent, and the certificate of a listener with TLS is not verified, because an expired
certificate must not make an orchestrator restart the proxy.

Exit codes: 0 done, also with violations; 1 usage error or no answer; of a probe, 1 if dpwatch is not alive or not ready.`,
		Example: `  dpwatch status --config /etc/dpwatch/dpwatch.yaml
  dpwatch status --address https://dpwatch.internal:9188 --token-file token
  dpwatch status --address unix:/run/dpwatch/admin.sock -o json
  dpwatch status --config /etc/dpwatch/dpwatch.yaml --alive`,
	}
	f.add(cmd, statusTimeout)
	engineFlag(cmd, &f.engine)
	asJSON := outputFlag(cmd)
	cmd.Flags().BoolVar(&alive, "alive", false, "only check whether dpwatch is alive, as a probe")
	cmd.Flags().BoolVar(&ready, "ready", false, "only check whether dpwatch is ready, as a probe")
	cmd.MarkFlagsMutuallyExclusive("alive", "ready")
	for _, other := range []string{"output", "token-file", "engine"} {
		cmd.MarkFlagsMutuallyExclusive("alive", other)
		cmd.MarkFlagsMutuallyExclusive("ready", other)
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if alive || ready {
			if !cmd.Flags().Changed("timeout") {
				f.timeout = probeTimeout
			}
			return f.probe(cmd.Context(), env, ready)
		}
		s, err := f.status(cmd.Context(), env)
		if err != nil {
			return err
		}
		if asJSON() {
			_, err = env.Stdout.Write(s.JSON)
			return err
		}
		return s.Write(env.Stdout)
	}
	return cmd
}

// probe asks whether a running dpwatch is alive, or ready.
func (f *adminFlags) probe(ctx context.Context, env environment, ready bool) error {
	asked, err := f.target(env, status.Nearest)
	if err != nil {
		return err
	}
	path, word := "/livez", "alive"
	if ready {
		path, word = "/readyz", "ready"
	}
	ctx, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	if err := asked.Ask(ctx, path); err != nil {
		return fmt.Errorf("not %s: %w", word, err)
	}
	_, err = fmt.Fprintln(env.Stdout, word)
	return err
}
