package main

import (
	"github.com/spf13/cobra"

	"github.com/dpwatch/dpwatch/internal/app"
)

func reproduceCommand(env environment) *cobra.Command {
	var o app.ReproduceOptions
	cmd := &cobra.Command{
		Use: "reproduce ID", Short: "Replay the query of a finding again, with fresh trials",
		Long: `Replay the query of an audit again, as the ledger has it: the statement with its parameters and settings, against the claim of the audit. The
trials are fresh, in a random order of their own, and the evidence begins at zero, so that the result does not depend on
the earlier one. The output has the former bound beside the new one, and says confirmed if the verdict is the same.

The copies, the engine and the number of trials are those of the configuration now. dpwatch need not run. The evidence in the ledger
does not change; who reproduced the finding, and the result, are recorded there (table actions). Values of rows and the statement are
withheld without --reveal, unless log.values or log.sql is set.

Exit codes: 0 no evidence, 1 error, 2 violation, 3 inconclusive.`,
		Example: `  dpwatch reproduce 3f9c --config dpwatch.yaml
  dpwatch reproduce 3f9c --config dpwatch.yaml --measure 2000 --reveal -o json`,
	}
	fs := cmd.Flags()
	fs.StringVarP(&o.Config, "config", "c", "", "path of dpwatch.yaml (required)")
	fs.IntVar(&o.MaxTrials, "max-trials", 0, "maximum number of pairs of executions; 0 = audit.max_trials")
	fs.IntVar(&o.Measure, "measure", 0, "maximum number of pairs of executions after a violation, which raise its lower bound")
	fs.StringVar(&o.Operator, "operator", "", "who asks; default: the user of this process")
	fs.BoolVar(&o.Reveal, "reveal", false, "show values of rows, and the statement with its literals")
	if err := cmd.MarkFlagRequired("config"); err != nil {
		panic(err) // the flag was defined above
	}
	asJSON := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		o.ID = args[0]
		r, err := app.Reproduce(cmd.Context(), env, o, progress(env.Stderr))
		if err != nil && o.Reveal {
			return &revealedError{err}
		}
		if err != nil {
			return err
		}
		return conclude(env, r, r.Verdict, asJSON())
	}
	return cmd
}
