package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/dpwatch/dpwatch/internal/app/findings"
	"github.com/dpwatch/dpwatch/internal/app/reports"
)

func reproduceCommand(env environment) *cobra.Command {
	var o findings.ReproduceOptions
	cmd := &cobra.Command{
		Use: "reproduce [ID]", Short: "Replay the query of a finding again, with fresh trials",
		Long: `Replay the query of an audit again, as the ledger has it: the statement with its parameters and settings, against the claim of the audit. The
trials are fresh, in a random order of their own, and the evidence begins at zero, so that the result does not depend on
the earlier one. The output has the former bound beside the new one, and says confirmed if the verdict is the same.

The copies, the engine and the number of trials are those of the configuration now. dpwatch need not run. The evidence in the ledger
does not change; who reproduced the finding, and the result, are recorded there (table actions). Values of rows and the statement are
withheld without --reveal, unless log.reveal shows them.

With --from, the violations in the manifest of a report (dpwatch report) are reproduced one after the other, and compared with what the manifest says. Its signature is
verified first.

Exit codes: 0 no evidence, 1 error, 2 violation, 3 inconclusive; of several, 1 if one has an error, otherwise 2 if one has a violation, otherwise 3 if one is inconclusive.`,
		Example: `  dpwatch audits reproduce 3f9c --config dpwatch.yaml
  dpwatch audits reproduce 3f9c --config dpwatch.yaml --measure 2000 --reveal -o json
  dpwatch audits reproduce --from finding-3f9c --public-key report.key.pub --config dpwatch.yaml`,
	}
	fs := cmd.Flags()
	var from reports.ManifestOptions
	fs.StringVar(&from.Path, "from", "", "manifest of a report, or its directory, whose violations are reproduced")
	fs.StringVar(&from.PublicKey, "public-key", "", "file with the public key that the manifest must have been signed with")
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
		if (len(args) == 0) == (from.Path == "") {
			return errors.New("give the ID of an audit, or --from with the manifest of a report: dpwatch audits list lists the audits")
		}
		if from.Path != "" {
			return reproduceManifest(cmd.Context(), env, o, from, asJSON())
		}
		o.ID = args[0]
		r, err := findings.Reproduce(cmd.Context(), env, o, progress(env.Stderr))
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

// reproduceManifest reproduces the violations in a manifest.
func reproduceManifest(ctx context.Context, env environment, o findings.ReproduceOptions, from reports.ManifestOptions, asJSON bool) error {
	all, err := reports.ReproduceManifest(ctx, env, o, from, progress(env.Stderr))
	if len(all.All) == 0 && err != nil {
		return err
	}
	if concluded := conclude(env, all, all.Verdict(), asJSON); err == nil {
		return concluded
	}
	if o.Reveal {
		return &revealedError{err}
	}
	return err
}
