package main

import (
	"github.com/spf13/cobra"

	"github.com/dpwatch/dpwatch/internal/app/check"
	"github.com/dpwatch/dpwatch/internal/preflight"
)

func doctorCommand(env environment) *cobra.Command {
	var bundle string
	cmd := &cobra.Command{
		Use: "doctor", Short: "Examine a deployment: the file, the databases, rights, copies, alerts, and how fast queries are replayed", Args: cobra.NoArgs,
		Long: `Examine a deployment: everything that dpwatch config check reports, and everything that dpwatch run needs. Can the addresses be listened on, do the engines
answer (with TLS if it is configured), do the connection strings work, do the copies exist with the same columns and can they be read, do public tables and declared
functions exist where replays find them; also row security, temporary tables, privileges of the replay role beyond reading, and the directory of the spool. Then
how it works: the numbers of rows of copies and public tables beside the engine's, the clocks of the databases, whether the hosts of the receivers of alerts
can be reached, how many of the captured queries in the ledger are rewritten as the configuration is now, how fast one of them is replayed, and what
the audits of all of them take. It counts the rows of tables that are not large, replays one captured query for two seconds, and changes nothing.

Every check is listed as ok, warning, fault or unchecked, with a remedy; missing GRANTs are printed as statements, by database. The exit code is 1 if there is
a fault.

--bundle collects what a support request needs in a .tar.gz file: the version, the configuration with secrets masked, this examination, and of a running
dpwatch its status, coverage, metrics, and the lists of audits and alerts. What cannot be had is replaced by the reason. The file has names of databases, roles,
tables, users and functions, and the shapes of queries without their constants; no SQL text, no parameters, no values of rows, no passwords. If log.reveal is
not none, the lists of audits and alerts are left out. Review it before you send it. A file that exists is not replaced.`,
		Example: `  dpwatch doctor --config dpwatch.yaml
  dpwatch doctor --config dpwatch.yaml -o json
  dpwatch doctor --config dpwatch.yaml --bundle bundle.tar.gz`,
	}
	path := configFlag(cmd)
	asJSON := outputFlag(cmd)
	cmd.Flags().StringVar(&bundle, "bundle", "", "write what a support request needs to this file (.tar.gz) instead")
	cmd.MarkFlagsMutuallyExclusive("bundle", "output")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if bundle != "" {
			return writeBundle(cmd.Context(), env, *path, bundle)
		}
		c, checks, err := checkFile(env, *path, asJSON())
		if err != nil {
			return err
		}
		checks = append(checks, preflight.Run(cmd.Context(), check.Doctor(c)...)...)
		return writeChecks(env, *path, checks, asJSON(), true)
	}
	return cmd
}
