package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dpwatch/dpwatch/internal/app/oneoff"
	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/rewrite"
)

func rewriteCommand(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use: "rewrite", Short: "Rewrite a query to read the tables of a neighbour schema", Args: cobra.NoArgs,
		Long: `Read one SQL statement from standard input and write it with every table of the schema --from replaced by the
table of that name in the schema --to. No database is read: every relation that resolves to --from is assumed to be a table
with a copy in --to; -o json lists all assumptions. If a statement cannot be rewritten, the exit code is 1, and the error
shows the reason and the line with a mark at the position; with -o json, the position is a byte offset from the start of the
input. For COPY (query) TO STDOUT and DECLARE c CURSOR FOR query, the query is written.`,
		Example: "  echo 'SELECT count(*) FROM users' | dpwatch rewrite --from public --to d1",
	}
	from := cmd.Flags().String("from", "public", "schema of the tables in the query")
	to := cmd.Flags().String("to", "", "schema of the neighbour (required)")
	safe := cmd.Flags().StringSlice("safe-function", nil, "function without side effects that is not part of PostgreSQL; repeatable, or several separated by\ncommas; * allows all functions")
	asJSON := outputFlag(cmd)
	if err := cmd.MarkFlagRequired("to"); err != nil {
		panic(err) // defined above
	}
	cmd.RunE = func(*cobra.Command, []string) error {
		sql, err := io.ReadAll(io.LimitReader(env.Stdin, oneoff.MaxSQLBytes+1))
		if err != nil {
			return fmt.Errorf("read SQL: %w", err)
		}
		if len(sql) > oneoff.MaxSQLBytes {
			return fmt.Errorf("the statement is longer than %d bytes", oneoff.MaxSQLBytes)
		}
		if rest, hasBOM := strings.CutPrefix(string(sql), "\uFEFF"); hasBOM { // spaces of the same length keep the byte offsets
			sql = []byte("   " + rest)
		}
		text := strings.TrimRight(string(sql), "; \r\n\t")
		out, assumed, err := rewriteOne(text, *from, *to, *safe)
		if err != nil {
			var u *rewrite.UnsupportedError
			if asJSON() && errors.As(err, &u) {
				return refusedJSON(env, u)
			}
			return oneoff.Refusal(text, err)
		}
		if asJSON() {
			return json.NewEncoder(env.Stdout).Encode(map[string]any{"sql": out, "assumed": assumed})
		}
		_, err = fmt.Fprintln(env.Stdout, out)
		return err
	}
	return cmd
}

// rewriteOne returns the SQL for the schema to, without a surrounding COPY or DECLARE, and the assumptions of the
// rewriting.
func rewriteOne(sql, from, to string, safe []string) (string, []string, error) {
	r, err := rewrite.New(rewrite.Options{
		Protected: []rewrite.Table{{Schema: from, Name: rewrite.AnyTable}}, SearchPath: []string{from},
		AllowFunctions: safe, MaxBytes: oneoff.MaxSQLBytes,
	})
	if err != nil {
		return "", nil, err
	}
	plan, err := r.Analyze(capture.Query{SQL: sql})
	if err != nil {
		return "", nil, err
	}
	out, err := plan.For(to)
	return strings.TrimSpace(out), plan.Assumed, err
}

// refusedJSON writes the reason why a statement was not rewritten. It always returns an error, with exit code 1: one
// without a text unless writing failed.
func refusedJSON(env environment, u *rewrite.UnsupportedError) error {
	err := json.NewEncoder(env.Stdout).Encode(map[string]any{
		"refused": map[string]any{"reason": u.Reason, "node": u.Node, "detail": u.Detail, "offset": u.Offset, "hint": u.Hint},
	})
	return errors.Join(err, &exitError{code: exitFailure})
}
