package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/dpwatch/dpwatch/internal/app/records"
	"github.com/dpwatch/dpwatch/internal/app/setup"
	"github.com/dpwatch/dpwatch/internal/app/status"
)

func budgetsCommand(env environment) *cobra.Command {
	var f adminFlags
	cmd := &cobra.Command{
		Use: "budgets", Short: "Show what each analyst received, by the claims of all answers together, beside the privacy budgets", Args: cobra.NoArgs,
		Long: `Show, for each budget of the configuration (budgets) and each analyst, how many answers with a claim the engine gave, what all of
them together reveal by the composition of the budget, which share of the budget that is, and when the budget will be exceeded if
the engine goes on as in the last 24 hours.

With --config, the ledger is read directly; dpwatch need not run. With --address, a running dpwatch is asked: GET /api/budgets.

Exit codes: 0 done; 1 usage error, no ledger, or no answer.`,
		Example: `  dpwatch budgets --config dpwatch.yaml
  dpwatch budgets --address unix:/run/dpwatch/admin.sock -o json`,
	}
	f.add(cmd, 30*time.Second)
	engineFlag(cmd, &f.engine)
	cmd.Flags().Lookup("config").Usage = "path of dpwatch.yaml, whose ledger is read"
	cmd.Flags().Lookup("token-file").Usage = "file with the token to send to --address"
	asJSON := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		ctx, cancel := context.WithTimeout(cmd.Context(), f.timeout)
		defer cancel()
		b, err := f.budgets(ctx, env)
		if err != nil {
			return err
		}
		return write(env, b, asJSON())
	}
	return cmd
}

// budgets reads the ledger or asks a running dpwatch.
func (f *adminFlags) budgets(ctx context.Context, env environment) (records.Budgets, error) {
	return ledgerOrAdmin(f, env, func() (none records.Budgets, err error) {
		c, err := setup.LoadEngine(env, f.config, f.engine)
		if err != nil {
			return none, err
		}
		return records.ReadBudgets(ctx, c)
	}, func(asked status.Target) (records.Budgets, error) { return records.FetchBudgets(ctx, asked) })
}
