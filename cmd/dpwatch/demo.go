package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/dpwatch/dpwatch/internal/demo"
)

func demoCommand(env environment) *cobra.Command {
	var o demo.Options
	cmd := &cobra.Command{
		Use: "demo", Short: "Everything on one machine: temporary PostgreSQL, honest and broken queries, verdicts", Args: cobra.NoArgs,
		Long: `Start a temporary PostgreSQL with example data and an honest and a broken DP engine, copy the data as neighbours create does,
and start the proxy and a client that sends a mix of queries through it. Every DP query is audited, and each verdict is shown
when it comes: whether the query leaks, how much is proven, and why. The client sends one of these queries first, and the
others after its verdict. With --all, it sends all at once, and a table at the end compares the planted verdicts with those
found. On a terminal, without --all, everything then runs until Ctrl-C. The cluster is removed afterwards.

Exit codes: 0 every verdict is as planted, 1 otherwise.`,
		Example: "  dpwatch demo\n  dpwatch demo --all\n  dpwatch demo --keep",
	}
	fs := cmd.Flags()
	fs.StringVar(&o.BinDir, "pg-bindir", "", "directory with initdb and postgres (default: DPWATCH_PG_BINDIR, then the usual places)")
	fs.StringVar(&o.Listen, "listen", "127.0.0.1:0", "address of the proxy")
	fs.StringVar(&o.Admin, "admin", "127.0.0.1:0", "address of metrics and status")
	fs.IntVar(&o.MaxTrials, "max-trials", 0, "maximum number of pairs of executions per query (default: 900, with --all 1500)")
	fs.DurationVar(&o.Patience, "patience", 15*time.Minute, "time limit for all verdicts")
	fs.BoolVar(&o.All, "all", false, "all planted queries, with a table at the end")
	fs.StringVar(&o.Dir, "dir", "demo", "directory for the configuration and the log, without --all")
	fs.BoolVar(&o.Keep, "keep", false, "keep everything running until Ctrl-C")
	asJSON := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		o.JSON = asJSON()
		return demo.Run(cmd.Context(), env, o)
	}
	return cmd
}
