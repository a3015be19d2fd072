package main

import (
	"time"

	"github.com/spf13/cobra"
)

// statusTimeout is the default time limit for the status, which can be long.
const statusTimeout = 10 * time.Second

func statusCommand(env environment) *cobra.Command {
	var f adminFlags
	cmd := &cobra.Command{
		Use: "status", Short: "Show the status of a running dpwatch: its parts, coverage, audits and violations", Args: cobra.NoArgs,
		Long: `Show the status of a running dpwatch, from its admin port (admin.listen): whether the auditor, the shadow database and the ledger
work, which share of the queries is audited, what is skipped, and the violations. Only the section admin of the configuration
is read, with its token and its certificate. With --address https://..., the certificate must be one that the system trusts.

-o json writes the answer of GET /api/status unchanged.

Exit codes: 0 done, also with violations; 1 usage error or no answer.`,
		Example: `  dpwatch status --config /etc/dpwatch/dpwatch.yaml
  dpwatch status --address https://dpwatch.internal:9188 --token-file token
  dpwatch status --address unix:/run/dpwatch/admin.sock -o json`,
	}
	f.add(cmd, statusTimeout, true)
	engineFlag(cmd, &f.engine)
	asJSON := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
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
