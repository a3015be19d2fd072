package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/dpwatch/dpwatch/internal/app/check"
	"github.com/dpwatch/dpwatch/internal/app/records"
	"github.com/dpwatch/dpwatch/internal/app/setup"
	"github.com/dpwatch/dpwatch/internal/app/status"
)

func coverageCommand(env environment) *cobra.Command {
	var f adminFlags
	var engine string
	since := 24 * time.Hour
	cmd := &cobra.Command{
		Use: "coverage", Short: "Show which share of the traffic is audited, and why the rest is not", Args: cobra.NoArgs,
		Long: `Show what became of the statements that clients ran: audited (by verdict), being audited, waiting, without a place for an audit,
without a claim, refused (by reason), not captured or lost, and not a DP query, with what to do about it. Each statement is
counted once, and DP queries also as distinct queries.

Below the table are up to five examples of the statements of each reason that are not audited: who sent them, their shape without constants,
and what to do about each. -o json has the text, too, if log.reveal shows it.

With --config, the ledger is read directly; dpwatch need not run. With --address, a running dpwatch is asked: GET /api/coverage.
Times are in whole hours. Statements count as audited if their query had an audit when they ran; the verdict is that of today.

Exit codes: 0 done; 1 usage error, no ledger, or no answer.`,
		Example: `  dpwatch coverage --config dpwatch.yaml
  dpwatch coverage --config dpwatch.yaml --since 168h --engine '*' -o json
  dpwatch coverage --address unix:/run/dpwatch/admin.sock`,
	}
	f.add(cmd, 30*time.Second)
	cmd.Flags().Lookup("config").Usage = "path of dpwatch.yaml, whose ledger is read"
	cmd.Flags().Lookup("token-file").Usage = "file with the token to send to --address"
	cmd.Flags().DurationVar(&since, "since", since, "how far to look back")
	cmd.Flags().StringVar(&engine, "engine", "", "name of an engine in the ledger (engine.name, engines); '*' = all; default: that of the configuration, if it has one")
	asJSON := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if since <= 0 {
			return fmt.Errorf("--since %s: must be more than 0", since)
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), f.timeout)
		defer cancel()
		c, err := f.coverage(ctx, env, engine, since)
		if err != nil {
			return err
		}
		return write(env, c, asJSON())
	}
	return cmd
}

// coverage reads the ledger or asks a running dpwatch.
func (f *adminFlags) coverage(ctx context.Context, env environment, engine string, since time.Duration) (records.Coverage, error) {
	return ledgerOrAdmin(f, env, func() (none records.Coverage, err error) {
		c, _, err := setup.Load(env, f.config)
		if err != nil {
			return none, err
		}
		if c, err = setup.LedgerEngine(c, engine); err != nil {
			return none, fmt.Errorf("%s: %w (--engine NAME)", f.config, err)
		}
		found, err := records.ReadCoverage(ctx, c, engine, since)
		if err == nil {
			found.Views = check.UnauditedViews(ctx, c)
		}
		return found, err
	}, func(asked status.Target) (records.Coverage, error) {
		return records.FetchCoverage(ctx, asked, engine, since)
	})
}
