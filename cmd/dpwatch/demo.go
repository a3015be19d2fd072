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
		Long: `Start a temporary PostgreSQL with the data of the method's showcase, an honest and a broken DP engine in it, the
proxy in front of it, and a client that sends a mix of queries through the proxy. Every DP query is audited; the table at
the end says what was planted and what was found. The cluster is gone afterwards.

Exit status: 0 when every verdict is as planted, 1 otherwise.`,
		Example: "  dpwatch demo\n  dpwatch demo --keep",
	}
	fs := cmd.Flags()
	fs.StringVar(&o.BinDir, "pg-bindir", "", "directory with initdb and postgres (default: DPWATCH_PG_BINDIR, then the usual places)")
	fs.StringVar(&o.Listen, "listen", "127.0.0.1:0", "where the proxy listens")
	fs.StringVar(&o.Admin, "admin", "127.0.0.1:0", "where metrics and status are served")
	fs.IntVar(&o.MaxTrials, "max-trials", 1500, "pairs of executions per query at most")
	fs.DurationVar(&o.Patience, "patience", 15*time.Minute, "give up after so long")
	fs.BoolVar(&o.Keep, "keep", false, "leave everything running afterwards, until Ctrl-C")
	asJSON := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		js, err := asJSON()
		if err != nil {
			return err
		}
		o.JSON = js
		return demo.Run(cmd.Context(), env, o)
	}
	return cmd
}
