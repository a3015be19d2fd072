package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/dpwatch/dpwatch/internal/app/auditor"
	"github.com/dpwatch/dpwatch/internal/app/setup"
)

func workerCommand(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use: "worker", Short: "Replay for the auditors of a dpwatch run, on this or another machine", Args: cobra.NoArgs,
		Long: `Run turns of audits that a dpwatch run hands out through the ledger, until SIGTERM or Ctrl-C: turns in progress then end early
and keep their trials. A worker has no proxy and captures nothing. Start as many as you need, on as many machines.

Use the configuration file of run, at least with the same sections privacy, shadow, claims, engine and engines, the same limits of audit,
and a ledger in a database that both reach. Of several engines, the worker serves all, or the one of --engine. A worker with other neighbours, copies or claims refuses its turns, and the status of run shows why.
The admin port (admin.listen) answers /livez, /readyz and /metrics. On the machine of run it needs another address, and so another file.`,
		Example: `  dpwatch worker --config dpwatch.yaml
  dpwatch worker --config dpwatch.yaml --slots 8`,
	}
	path := configFlag(cmd)
	engine := ""
	engineFlag(cmd, &engine)
	cmd.Flags().Lookup("engine").Usage = "name of the only engine to serve; default: all engines of the configuration"
	slots := cmd.Flags().Int("slots", 0, "number of audits of each engine that replay concurrently in this process, each on two connections; 0 = audit.workers")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, _, err := setup.Load(env, *path)
		if err == nil && engine != "" {
			c, err = c.ForEngine(engine)
		}
		if err != nil {
			return err
		}
		if *slots < 0 || *slots > 1000 {
			return errors.New("--slots must be between 0 and 1000")
		}
		lines := setup.NewLogQueue(env.Stderr)
		defer lines.Close(logGrace)
		log, err := setup.NewLogger(lines, c.Log.Level)
		if err != nil {
			return err
		}
		return auditor.RunWorker(cmd.Context(), c, *slots, log)
	}
	return cmd
}
