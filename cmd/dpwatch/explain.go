package main

import (
	"context"
	"errors"
	"io"

	"github.com/spf13/cobra"

	"github.com/dpwatch/dpwatch/internal/app/findings"
	"github.com/dpwatch/dpwatch/internal/app/setup"
	"github.com/dpwatch/dpwatch/internal/app/status"
	"github.com/dpwatch/dpwatch/internal/read"
)

func explainCommand(env environment) *cobra.Command {
	var f adminFlags
	var reveal, full bool
	cmd := &cobra.Command{
		Use: "explain ID", Short: "Explain a finding: how bad, what gives it away, why, who, and what now",
		Long: `Answer five questions about an audit: how bad is it, what gives a person away, why probably, who is affected and who asked, and what to
do now; and list what the audit does not prove. Units appear as pseudonyms, never with their keys.

With --config, the ledger is read directly; dpwatch need not run. With --address, or if audits are kept in memory, a running dpwatch
is asked; then it is not known how the units were chosen. --reveal shows the values of rows, what the rules found in the units, and the
statement with its literals, as captured and as replayed; it needs --config, whose role owns the ledger. Without it they are withheld, unless log.reveal shows
them.

-o issue writes what was found as Markdown that the maintainers of the engine can check: what is asked, seen and expected, the counts of
both worlds, how to see it again, and what is not claimed. With --reveal it holds the statement and the answers: read it before you send it.

--full adds everything else about the audit: its times, the report as dpwatch audit prints it, the confirmation, the watch after the verdict, assumptions, neighbours and
groups; of a running dpwatch (--address) also what the audit waits for.

The beginning of the ID is enough if no other audit begins with it.

Exit codes: 0 done, whatever the verdict; 1 usage error, no answer, or no such audit.`,
		Example: `  dpwatch explain 3f9c --config dpwatch.yaml
  dpwatch explain 3f9c --config dpwatch.yaml --reveal -o json
  dpwatch explain 3f9c --config dpwatch.yaml -o issue --reveal > issue.md
  dpwatch explain 3f9c --address unix:/run/dpwatch/admin.sock --full`,
	}
	f.add(cmd, ledgerTime)
	cmd.Flags().Lookup("config").Usage = "path of dpwatch.yaml, whose ledger is read"
	cmd.Flags().Lookup("token-file").Usage = "file with the token to send to --address"
	cmd.Flags().BoolVar(&reveal, "reveal", false, "show values of rows, and the statement with its literals")
	cmd.Flags().BoolVar(&full, "full", false, "add everything else about the audit")
	format := "text"
	cmd.Flags().VarP(choice{&format, []string{"text", "json", "issue"}}, "output", "o", "text, json, or issue: Markdown for the maintainers of the engine")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ctx, cancel := context.WithTimeout(cmd.Context(), f.timeout)
		defer cancel()
		if format == "issue" {
			return f.issue(ctx, env, findings.ExplainOptions{Config: f.config, ID: args[0], Reveal: reveal})
		}
		x, err := f.explain(ctx, env, findings.ExplainOptions{Config: f.config, ID: args[0], Reveal: reveal})
		if err != nil {
			return err
		}
		x.Full = full
		return write(env, x, format == "json")
	}
	return cmd
}

// issue prints an issue for the maintainers of the engine, from the ledger.
func (f *adminFlags) issue(ctx context.Context, env environment, o findings.ExplainOptions) error {
	if f.config == "" || f.address != "" {
		return errors.New("-o issue needs --config without --address: it is made from the evidence in the ledger")
	}
	text, err := findings.Issue(ctx, env, o, version)
	if err != nil {
		return err
	}
	_, err = io.WriteString(env.Stdout, text)
	return err
}

// explain reads the ledger or asks a running dpwatch.
func (f *adminFlags) explain(ctx context.Context, env environment, o findings.ExplainOptions) (read.Explanation, error) {
	if f.config != "" && f.address == "" {
		x, err := findings.Explain(ctx, env, o)
		if !errors.Is(err, setup.ErrNoLedger) || o.Reveal {
			return x, err
		}
	}
	if o.Reveal {
		return read.Explanation{}, errors.New("--reveal needs --config without --address: the admin port withholds values unless log.reveal is values and the token has the role auditor")
	}
	asked, err := f.target(env, status.FetchNearest)
	if err != nil {
		return read.Explanation{}, err
	}
	return findings.ExplainRunning(ctx, asked, o.ID)
}
