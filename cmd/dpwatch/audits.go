package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/dpwatch/dpwatch/internal/read"
)

func auditsCommand(env environment) *cobra.Command {
	group := &cobra.Command{Use: "audits", Short: "List audits, accept a violation, or replay a query again"}
	group.AddCommand(auditsListCommand(env), acceptCommand(env), supervised(env, reproduceCommand(env), showsValues("reveal")))
	return group
}

func auditsListCommand(env environment) *cobra.Command {
	var f adminFlags
	var filter read.Filter
	cmd := &cobra.Command{
		Use: "list", Short: "List the audits of a running dpwatch, violations first",
		Long: `List the audits of a running dpwatch, from its admin port: violations first, then those whose queries ran most recently.
LOWER BOUND is certified; ESTIMATE, by buckets, has no confidence statement and may be below it.

Exit codes: 0 done, also with violations; 1 usage error or no answer.`,
		Example: `  dpwatch audits list --config dpwatch.yaml
  dpwatch audits list --config dpwatch.yaml --state waiting --limit 0
  dpwatch audits list --address unix:/run/dpwatch/admin.sock --verdict violation -o json`,
	}
	f.add(cmd, statusTimeout)
	engineFlag(cmd, &f.engine)
	state, verdict := choice{&filter.State, read.FilterStates()}, choice{&filter.Verdict, read.Verdicts()}
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
