package main

import (
	"errors"
	"io"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/dpwatch/dpwatch/internal/app"
	"github.com/dpwatch/dpwatch/internal/terminal"
)

func auditCommand(env environment) *cobra.Command {
	o := app.AuditOptions{Given: map[string]bool{}}
	cmd := &cobra.Command{
		Use: "audit", Short: "Audit one query against a claim, now", Args: cobra.NoArgs,
		Long: `Replay one query on two neighbouring copies of the data and report whether it leaks more than is claimed.
Table names that resolve to the schema --from are replaced by --d0 and --d1. Nothing is written; give a role that may
only read these schemas. The report and the messages of errors show values of rows; --values=false withholds them, as the
alerts of dpwatch run do. With several neighbours the report is about the one that shows most, and the error rate is
shared among them. A violation is reported when fresh trials, each in a session of its own, have confirmed it. The copies must stay as they are: if they are replaced meanwhile, the audit ends without a verdict.

With --config, the connection, the copies, the tables, the claims, the confidence and the number of trials are those of
dpwatch run; flags override them, and --epsilon is not needed where the configuration claims something for the query.

Exit codes: 0 no evidence, 2 violation, 3 inconclusive, 1 fault.`,
		Example: `  dpwatch audit --config dpwatch.yaml --sql "SELECT anon_count(id, 0.5) FROM users"
  dpwatch audit --config dpwatch.yaml --file query.sql --d1 d1_2 --max-trials 2000 --plot plots
  dpwatch audit --dsn postgres://replay@localhost/shadow --d0 d0 --d1 d1 --epsilon 0.5 \
      --sql "SELECT anon_count(id, 0.5) FROM users"`,
	}
	fs := cmd.Flags()
	fs.StringVarP(&o.Config, "config", "c", "", "path of dpwatch.yaml, for everything that no flag gives")
	fs.StringVar(&o.DSN, "dsn", "", "connection string of the database with both copies (required without --config)")
	fs.StringArrayVar(&o.Engines, "engine", nil, "connection string of an engine beside the database: the trials go through it; repeated, one\nfor D0 and one for each --d1, and the query is sent as it is")
	fs.StringVar(&o.Protocol, "protocol", "extended", "how the query is sent: extended, or simple, which has no parameters and is planned\nanew by every trial")
	fs.StringVar(&o.D0, "d0", "", "schema with the data (required without --config)")
	fs.StringSliceVar(&o.D1, "d1", nil, "schema with the data without one privacy unit (required without --config); several, by\ncomma, share the trials on D0")
	fs.StringVar(&o.From, "from", "public", "schema that the query's tables are in")
	fs.StringVar(&o.SQL, "sql", "", "the query")
	fs.StringVar(&o.File, "file", "", "file with the query; - for standard input")
	fs.StringArrayVar(&o.Params, "param", nil, "value of $1, $2, ... in text form; repeat it")
	fs.StringSliceVar(&o.SearchPath, "search-path", []string{"public"}, "schemas where the query's functions are found")
	fs.Float64Var(&o.Epsilon, "epsilon", 0, "the claimed epsilon (required without --config)")
	fs.Float64Var(&o.Delta, "delta", 0, "the claimed delta")
	fs.Float64Var(&o.Confidence, "confidence", 0.95, "one minus the rate of false alarms")
	fs.IntVar(&o.MaxTrials, "max-trials", 10_000, "pairs of executions at most")
	fs.DurationVar(&o.Timeout, "statement-timeout", 30*time.Second, "a trial that takes longer is an outcome of its own")
	fs.BoolVar(&o.Hoist, "hoist", true, "compute once what every trial would compute alike, where the role may make temporary tables")
	fs.StringVar(&o.Deterministic, "deterministic", "violation", deterministicUsage)
	fs.BoolVar(&o.VaryText, "vary-text", false, "put a comment with a random number in front of each statement that confirms a violation, so that\na cache of results does not know it")
	fs.StringVar(&o.Plot, "plot", "", "directory for plots (SVG and PNG) of the neighbour that the report is about")
	values := valuesFlag(cmd)
	asJSON := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		js, err := asJSON()
		if err != nil {
			return err
		}
		fs.Visit(func(flag *pflag.Flag) { o.Given[flag.Name] = true })
		if o.Plot != "" && !*values {
			return errors.New("--plot draws the values that --values=false withholds: give one of the two")
		}
		found, err := app.Audit(cmd.Context(), env, &o, progress(env.Stderr))
		if err != nil && *values {
			return revealed(err)
		}
		if err != nil {
			return err
		}
		return conclude(env, found.Shown(*values), js)
	}
	return cmd
}

// progress returns a bar on a terminal, and a silent one elsewhere and before Begin.
func progress(w io.Writer) app.Progress {
	bar := progressbar.DefaultSilent(1)
	return app.Progress{
		Begin: func(what string, total int) {
			if terminal.Interactive(w) {
				bar = progressbar.NewOptions(total, progressbar.OptionSetWriter(w), progressbar.OptionSetDescription(what),
					progressbar.OptionShowCount(), progressbar.OptionClearOnFinish(), progressbar.OptionThrottle(100*time.Millisecond))
			}
		},
		Add: func(n int) { _ = bar.Add(n) },
		End: func() { _ = bar.Clear() },
	}
}
