package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/rewrite"
)

func rewriteCommand(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use: "rewrite", Short: "Rewrite a query's table names into a neighbour schema", Args: cobra.NoArgs,
		Long: `Read one SQL statement on standard input and write it with every table of the schema --from renamed into
the schema --to, by its syntax tree. Without a database to ask, every relation that resolves to --from is taken to be a
table with a copy in --to; -o json lists what else is taken for granted. A statement that cannot be rewritten is refused with the
place (a byte offset from the start of the input) and the reason (exit 1). Of COPY (query) TO STDOUT and of
DECLARE c CURSOR FOR query the query is written.`,
		Example: "  echo 'SELECT count(*) FROM users' | dpwatch rewrite --from public --to d1",
	}
	from := cmd.Flags().String("from", "public", "schema of the tables in the query")
	to := cmd.Flags().String("to", "", "schema of the neighbour (required)")
	safe := cmd.Flags().StringSlice("safe-function", nil, "function without side effects, beyond PostgreSQL's own; * for all")
	asJSON := outputFlag(cmd)
	if err := cmd.MarkFlagRequired("to"); err != nil {
		panic(err) // defined above
	}
	cmd.RunE = func(*cobra.Command, []string) error {
		js, err := asJSON()
		if err != nil {
			return err
		}
		sql, err := io.ReadAll(io.LimitReader(env.Stdin, maxSQLBytes+1))
		if err != nil {
			return fmt.Errorf("read SQL: %w", err)
		}
		if len(sql) > maxSQLBytes {
			return fmt.Errorf("the statement is longer than %d bytes", maxSQLBytes)
		}
		if rest, marked := strings.CutPrefix(string(sql), "\uFEFF"); marked { // offsets count from the start of the input
			sql = []byte("   " + rest)
		}
		text := strings.TrimRight(string(sql), "; \r\n\t")
		out, assumed, err := rewriteOne(text, *from, *to, *safe)
		if err != nil {
			return refusal(env, text, err, js)
		}
		if js {
			return json.NewEncoder(env.Stdout).Encode(map[string]any{"sql": out, "assumed": assumed})
		}
		_, err = fmt.Fprintln(env.Stdout, out)
		return err
	}
	return cmd
}

const maxSQLBytes = 1 << 20

// rewriteOne returns the SQL on the neighbour, without the COPY around it, and what that takes for granted.
func rewriteOne(sql, from, to string, safe []string) (string, []string, error) {
	r, err := rewrite.New(rewrite.Options{
		Protected: []rewrite.Table{{Schema: from, Name: rewrite.AnyTable}}, SearchPath: []string{from},
		AllowFunctions: safe, MaxBytes: maxSQLBytes,
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

// refusal tells why a statement was not rewritten, with a caret under the place.
func refusal(env environment, sql string, err error, js bool) error {
	var u *rewrite.UnsupportedError
	if !errors.As(err, &u) {
		return err
	}
	if js {
		encodeErr := json.NewEncoder(env.Stdout).Encode(map[string]any{
			"refused": map[string]any{"reason": u.Reason, "node": u.Node, "detail": u.Detail, "offset": u.Offset, "hint": u.Hint},
		})
		if encodeErr != nil {
			return encodeErr
		}
		return &exitError{code: exitFault}
	}
	text := "refused: " + string(u.Reason)
	if u.Detail != "" {
		text += ": " + u.Detail
	}
	if line, column, ok := place(sql, u.Offset); ok {
		text += "\n  " + line + "\n  " + strings.Repeat(" ", column) + "^"
	}
	if u.Hint != "" {
		text += "\n" + u.Hint
	}
	if strings.Contains(u.Hint, "claims.safe_functions") {
		text += "\n(for this command: --safe-function)"
	}
	return errors.New(text)
}

// place returns the line of sql that holds a byte offset, cut to what fits on a screen, and the column in it.
func place(sql string, offset int) (line string, column int, ok bool) {
	if offset < 0 || offset > len(sql) || sql == "" {
		return "", 0, false
	}
	start := strings.LastIndexByte(sql[:offset], '\n') + 1
	end := len(sql)
	if i := strings.IndexByte(sql[offset:], '\n'); i >= 0 {
		end = offset + i
	}
	const before, after = 60, 60
	from, to := max(start, offset-before), min(end, offset+after)
	column = len([]rune(strings.ToValidUTF8(sql[from:offset], "?")))
	return strings.ReplaceAll(strings.ToValidUTF8(sql[from:to], "?"), "\t", " "), column, true
}
