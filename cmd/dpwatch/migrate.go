package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/dpwatch/dpwatch/internal/app/setup"
)

func migrateCommand(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use: "migrate", Short: "Create or upgrade the schema of the ledger", Args: cobra.NoArgs,
		Long: `Create the schema of the ledger (ledger.dsn, ledger.schema), or upgrade it to this version of dpwatch.
run does the same at its start unless ledger.migrate is false. A ledger of a newer version, or of 0.1.0 and
earlier, is not changed.
Several processes may migrate one ledger at the same time.`,
		Example: "  dpwatch migrate --config dpwatch.yaml",
	}
	path := configFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, _, err := setup.Load(env, *path)
		if err != nil {
			return err
		}
		return setup.MigrateLedgers(cmd.Context(), c, func(from, to int64) {
			what := "created or upgraded"
			if from == to {
				what = "up to date"
			}
			fmt.Fprintf(env.Stdout, "ledger schema %s: %s, version %d\n", c.Ledger.Schema, what, to)
		})
	}
	return cmd
}
