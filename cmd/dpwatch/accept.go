package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/dpwatch/dpwatch/internal/app/records"
	"github.com/dpwatch/dpwatch/internal/app/setup"
)

// ledgerTime is the time limit of a command that reads or writes the ledger.
const ledgerTime = 30 * time.Second

func acceptCommand(env environment) *cobra.Command {
	var o records.AcceptOptions
	var list bool
	cmd := &cobra.Command{
		Use: "accept [ID]", Short: "Accept a known violation until a date: it sends no alerts",
		Long: `Record in the ledger that a violation is known: it stays one, and is shown as accepted, but sends no alerts and does not count in
dpwatch_open_violations. The acceptance ends at its date, when the engine changes, and with --revoke; then dpwatch logs it and
sends the alert again. Who accepted what, when and why stays in the ledger (table actions).

The beginning of the ID is enough if no other audit begins with it. A running dpwatch notices a decision within seconds; it need not run.

Exit codes: 0 done; 1 usage error, no ledger, no such audit, or it has no violation.`,
		Example: `  dpwatch audits accept 3f9c --config dpwatch.yaml --until 2027-01-31 --reason "fixed by release 12, see OPS-411"
  dpwatch audits accept 3f9c --config dpwatch.yaml --revoke --reason "release 12 was cancelled"
  dpwatch audits accept --config dpwatch.yaml --list`,
	}
	path := configFlag(cmd)
	fs := cmd.Flags()
	fs.StringVar(&o.Until, "until", "", "last day of the acceptance (2027-01-31, in UTC), or a time (2027-01-31T12:00:00Z)")
	fs.StringVar(&o.Reason, "reason", "", "why; required")
	fs.StringVar(&o.Operator, "operator", "", "who decides; default: the user of this process")
	fs.BoolVar(&o.Revoke, "revoke", false, "end an acceptance before its date")
	fs.BoolVar(&list, "list", false, "list the accepted violations of all engines in the ledger")
	asJSON := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		switch {
		case list && (len(args) > 0 || o != records.AcceptOptions{}):
			return errors.New("--list takes no ID and only --config and -o")
		case !list && (len(args) == 0 || args[0] == ""):
			return errors.New("give the ID of an audit, or --list: dpwatch audits list lists the audits")
		}
		c, _, err := setup.Load(env, *path)
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), ledgerTime)
		defer cancel()
		if list {
			all, err := records.AcceptedViolations(ctx, c)
			if err != nil {
				return err
			}
			return write(env, all, asJSON())
		}
		o.ID = args[0]
		decision, err := records.Accept(ctx, c, o)
		if err != nil {
			return err
		}
		return write(env, decision, asJSON())
	}
	return cmd
}
