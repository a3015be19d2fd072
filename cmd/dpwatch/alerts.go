package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/dpwatch/dpwatch/config"
	"github.com/dpwatch/dpwatch/internal/app/records"
	"github.com/dpwatch/dpwatch/internal/app/setup"
)

func alertsCommand(env environment) *cobra.Command {
	cmd := &cobra.Command{Use: "alerts", Short: "List alerts and their deliveries, send failed ones again, or test a receiver"}
	cmd.AddCommand(alertsListCommand(env), alertsRetryCommand(env), alertsTestCommand(env))
	return cmd
}

func alertsListCommand(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use: "list [ID]", Short: "List the latest alerts of all engines in the ledger, or the messages of one",
		Long: `List the latest alerts of all engines in the ledger, those that changed last first, and how many of their messages wait or failed.
With an ID, show that alert and its messages to receivers: their states, attempts and last errors. The beginning of the ID is enough if no other alert
begins with it.`,
		Example: `  dpwatch alerts list --config dpwatch.yaml
  dpwatch alerts list 3f9c --config dpwatch.yaml`,
	}
	most := cmd.Flags().Int("limit", 100, "number of alerts")
	onLedger(env, cmd, func(ctx context.Context, c config.Config, args []string) (writer, error) {
		switch {
		case len(args) > 0:
			return records.ShowAlert(ctx, c, args[0])
		case *most < 1:
			return nil, errors.New("--limit must be at least 1")
		}
		return records.ListAlerts(ctx, c, *most)
	})
	return cmd
}

func alertsRetryCommand(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use: "retry ID", Short: "Send the failed messages of an alert again",
		Long:    "Send the failed messages of an alert again. The running dpwatch that audits the engine does so within seconds, or when it starts.",
		Example: `  dpwatch alerts retry 3f9c --config dpwatch.yaml`,
	}
	onLedger(env, cmd, func(ctx context.Context, c config.Config, args []string) (writer, error) {
		return records.RetryAlert(ctx, c, args[0])
	})
	return cmd
}

func alertsTestCommand(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use: "test RECEIVER", Short: "Send a test alert, and its end, to a receiver of alerts.receivers",
		Long: `Send an alert that is marked as a test to a receiver of the configuration, and then its end, unless send_resolved is false. Each is
tried once. A running dpwatch is not needed.

Exit codes: 0 the receiver accepted it; 1 usage error, no such receiver, or it did not accept it.`,
		Example: `  dpwatch alerts test oncall --config dpwatch.yaml`,
	}
	path := configFlag(cmd)
	asJSON := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, _, err := setup.Load(env, *path)
		if err != nil {
			return err
		}
		sent, err := records.TestAlert(cmd.Context(), env, c, args[0])
		if err != nil {
			return err
		}
		return write(env, sent, asJSON())
	}
	return cmd
}

// onLedger makes cmd load a configuration, do something with its ledger, and write the result.
func onLedger(env environment, cmd *cobra.Command, do func(context.Context, config.Config, []string) (writer, error)) {
	path := configFlag(cmd)
	asJSON := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, _, err := setup.Load(env, *path)
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), ledgerTime)
		defer cancel()
		result, err := do(ctx, c, args)
		if err != nil {
			return err
		}
		return write(env, result, asJSON())
	}
}
