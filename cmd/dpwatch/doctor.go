package main

import (
	"github.com/spf13/cobra"

	"github.com/dpwatch/dpwatch/internal/app/check"
	"github.com/dpwatch/dpwatch/internal/app/setup"
	"github.com/dpwatch/dpwatch/internal/preflight"
)

func doctorCommand(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use: "doctor", Short: "Examine a deployment: everything that config check --connect checks, and how it works", Args: cobra.NoArgs,
		Long: `Examine a deployment. Everything that config check --connect checks, and: the numbers of rows of copies and public
tables beside the engine's, the clocks of the databases, whether the hosts of the receivers of alerts
can be reached, how many of the captured queries in the ledger are rewritten as the configuration is now, how fast one of them is replayed, and what
the audits of all of them take. It counts the rows of tables that are not large, replays one
captured query for two seconds, and changes nothing.

Every check is listed as ok, warning, fault or unchecked, with a remedy. The exit code is 1 if there is a fault.`,
		Example: `  dpwatch doctor --config dpwatch.yaml
  dpwatch doctor --config dpwatch.yaml -o json`,
	}
	path := configFlag(cmd)
	asJSON := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, _, err := setup.Load(env, *path)
		if err != nil {
			return err
		}
		return writeChecks(env, *path, preflight.Run(cmd.Context(), check.Doctor(c)...), asJSON(), true)
	}
	return cmd
}
