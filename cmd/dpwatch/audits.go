package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/dpwatch/dpwatch/internal/app/records"
	"github.com/dpwatch/dpwatch/internal/app/status"
)

func auditsCommand(env environment) *cobra.Command {
	group := &cobra.Command{Use: "audits", Short: "List or show the audits of a running dpwatch"}
	group.AddCommand(auditsListCommand(env), auditsShowCommand(env))
	return group
}

func auditsListCommand(env environment) *cobra.Command {
	var f adminFlags
	var filter status.Filter
	cmd := &cobra.Command{
		Use: "list", Short: "List the audits of a running dpwatch, violations first",
		Long: `List the audits of a running dpwatch, from its admin port: violations first, then those whose queries ran most recently.
LOWER BOUND is certified; ESTIMATE, by buckets, has no confidence statement and may be below it.

Exit codes: 0 done, also with violations; 1 usage error or no answer.`,
		Example: `  dpwatch audits list --config dpwatch.yaml
  dpwatch audits list --config dpwatch.yaml --state waiting --limit 0
  dpwatch audits list --address unix:/run/dpwatch/admin.sock --verdict violation -o json`,
	}
	f.add(cmd, statusTimeout, true)
	engineFlag(cmd, &f.engine)
	state, verdict := choice{&filter.State, status.States()}, choice{&filter.Verdict, status.Verdicts()}
	cmd.Flags().Var(state, "state", "only audits in this state: "+state.form())
	cmd.Flags().Var(verdict, "verdict", "only audits with this verdict: "+verdict.form())
	cmd.Flags().IntVar(&filter.Limit, "limit", 50, "greatest number of audits; 0 = all")
	cmd.Flags().StringVar(&filter.Cursor, "cursor", "", "begin after the page that gave this cursor (next_cursor)")
	asJSON := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if filter.Limit < 0 {
			return fmt.Errorf("--limit %d: must be 0 (all) or more", filter.Limit)
		}
		s, err := f.status(cmd.Context(), env)
		if err != nil {
			return err
		}
		listing, err := s.List(filter)
		if err != nil {
			return err
		}
		return write(env, listing, asJSON())
	}
	return cmd
}

func auditsShowCommand(env environment) *cobra.Command {
	var f adminFlags
	cmd := &cobra.Command{
		Use: "show ID", Short: "Show everything about one audit of a running dpwatch",
		Long: `Show everything that the status has about one audit: the query, the claim, what the audit waits for, the verdict and its reason, the
bound, the event, the confirmation, the watch after the verdict, warnings, assumptions and neighbours. The beginning of the ID is enough if no other audit begins with it. The values of
rows are withheld unless log.values is set and the token has the role auditor. Of an audit that is only in the ledger (evicted, or of another engine), the claim, the
verdict, the bound, the users and the history are shown.

Exit codes: 0 done, whatever the verdict; 1 usage error, no answer, or no such audit.`,
		Example: `  dpwatch audits show 3f9c --config dpwatch.yaml
  dpwatch audits show 3f9c12ab34cd --config dpwatch.yaml -o json`,
	}
	f.add(cmd, statusTimeout, true)
	engineFlag(cmd, &f.engine)
	asJSON := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		s, err := f.status(cmd.Context(), env)
		if err != nil {
			return err
		}
		a, err := s.Audit(args[0])
		if errors.Is(err, status.ErrNoAudit) {
			return f.stored(cmd.Context(), env, args[0], asJSON())
		}
		if err != nil {
			return err
		}
		return write(env, a, asJSON())
	}
	return cmd
}

// stored shows an audit that only the ledger of a running dpwatch has.
func (f *adminFlags) stored(ctx context.Context, env environment, id string, asJSON bool) error {
	asked, err := f.target(env, status.FetchNearest)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	a, err := records.FetchAudit(ctx, asked, id)
	if err != nil {
		return err
	}
	return write(env, a, asJSON)
}
