package main

import (
	"errors"
	"io"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/dpwatch/dpwatch/internal/app/oneoff"
	"github.com/dpwatch/dpwatch/internal/app/setup"
	"github.com/dpwatch/dpwatch/internal/read"
	"github.com/dpwatch/dpwatch/internal/terminal"
	"github.com/dpwatch/dpwatch/internal/withheld"
)

func auditCommand(env environment) *cobra.Command {
	o := oneoff.Options{Given: map[string]bool{}}
	cmd := &cobra.Command{
		Use: "audit", Short: "Audit one query against a claim, now", Args: cobra.NoArgs,
		Long: `Replay one query on two neighbouring copies of the data and report whether it leaks more than is claimed.
Tables in the schema --from are replaced by those in --d0 and --d1, which are only read: use a role that can only read these
schemas. The report and error messages show values of rows; --values=false withholds them, as the alerts of dpwatch run do.
With several neighbours, the report is about the one with the strongest evidence, and they share the error rate. A violation
is reported after fresh trials, each in its own session, have confirmed it. With a twin (a second copy of D0, shadow.twin or
--twin), it is reported only if the answers on D0 and the twin are alike. Copies of at most 64 MiB of neighbours.source are
then made anew, and dropped at the end: the violation must show on these, too. If the copies are replaced during the audit, it
ends without a verdict. If trials do not read the copies, or read the tables that these were made from, it is inconclusive;
a role that may read those tables is an error.

With --recreate, the copies are made anew from neighbours.source for each pair of trials, and dropped: noise that is drawn
once for each copy (a materialised view, a default) is then drawn for each trial. It needs rights to create schemas
(neighbours.target), and time: it is for small data.

With --shrink, rows are taken away from new copies of D0 and D1 after a violation while it still shows (delta debugging), and
the smallest pair is audited again. The report has the numbers of rows and, with at most 50 rows and unless --values=false,
SQL that makes the pair, which -o issue shows, too. It needs the rights that --recreate needs, and drops the copies at the end.
After SIGINT the smallest pair so far is reported.

Several --sql are a sequence: each trial runs them in their order in a session of its own, and their answers together are
judged. This finds noise that queries share or reuse; each query may be right alone. At most 8 queries.

With --config, the connection, the copies, the tables, the claims, the confidence and the number of trials are those of
dpwatch run; flags override them, and --epsilon is not needed if the configuration has a claim for the query.

-o sarif writes SARIF 2.1.0, which CI systems show: a violation is an error, another audit without a conclusion a warning or
a note, and no evidence no result. It never has values of rows or literals. The finding is at --file or, without one, at
--config.

Exit codes: 0 no evidence, 1 error (also a crash: the command runs in a child process), 2 violation, 3 inconclusive.`,
		Example: `  dpwatch audit --config dpwatch.yaml --sql "SELECT anon_count(id, 0.5) FROM users"
  dpwatch audit --config dpwatch.yaml --file query.sql --d1 d1_2 --max-trials 2000 --plot plots
  dpwatch audit --config dpwatch.yaml --file query.sql --mu 0.268
  dpwatch audit --config dpwatch.yaml --file query.sql -o sarif > dpwatch.sarif
  dpwatch audit --config dpwatch.yaml --epsilon 0.5 --recreate --sql "SELECT n FROM synopsis"
  dpwatch audit --config dpwatch.yaml --file query.sql --shrink -o issue > issue.md
  dpwatch audit --config dpwatch.yaml --sql "SELECT anon_count(id, 0.5) FROM users" \
      --sql "SELECT anon_count(id, 0.5) FROM users WHERE age < 30"
  dpwatch audit --dsn postgres://replay@localhost/shadow --d0 d0 --d1 d1 --epsilon 0.5 \
      --sql "SELECT anon_count(id, 0.5) FROM users"`,
	}
	fs := cmd.Flags()
	fs.StringVarP(&o.Config, "config", "c", "", "path of dpwatch.yaml, for everything that is not given by a flag")
	fs.StringVar(&o.EngineName, "engine-name", "", "name of an engine, if the configuration has several (engines)")
	fs.StringVar(&o.DSN, "dsn", "", "connection string of the database with both copies (required without --config)")
	fs.StringArrayVar(&o.Engines, "engine", nil, "connection string of an engine beside the database: trials go through it; repeat it to give one\nfor D0, each --d1 and --twin, then the query is sent unchanged")
	o.Protocol = "extended"
	fs.Var(choice{&o.Protocol, []string{"extended", "simple"}}, "protocol", "how the query is sent: extended, or simple, which has no parameters and is planned\nagain in every trial")
	fs.StringVar(&o.D0, "d0", "", "schema with the data (required without --config)")
	fs.StringSliceVar(&o.D1, "d1", nil, "schema with the data without one privacy unit (required without --config); several,\nseparated by commas, share the trials on D0")
	fs.StringVar(&o.Twin, "twin", "", "schema with a second copy of D0: a violation is reported only if the answers on both are alike")
	fs.StringVar(&o.From, "from", "public", "schema that the query's tables are in")
	sql := fs.StringArray("sql", nil, "the query; repeat it to audit a sequence: the answers of several queries of one session\ntogether, against --epsilon and --delta or the composition of their claims")
	o.Composition = "sum"
	fs.Var(choice{&o.Composition, []string{"sum", "max"}}, "composition", "the claim of a sequence: sum of the claims of its queries, or max if each privacy unit\nis in the rows of only one of them")
	fs.StringVar(&o.File, "file", "", "file with the query; - for standard input")
	fs.StringArrayVar(&o.Params, "param", nil, "value of $1, $2, ... in text form; repeat it")
	fs.StringSliceVar(&o.SearchPath, "search-path", []string{"public"}, "schemas where the query's functions are found")
	fs.Float64Var(&o.Epsilon, "epsilon", 0, "the claimed epsilon (required without --config, --mu, --rho and --curve)")
	fs.Float64Var(&o.Delta, "delta", 0, "the claimed delta")
	claimed := curveFlags(fs)
	fs.Float64Var(&o.Confidence, "confidence", 0.95, "one minus the rate of false alarms")
	fs.IntVar(&o.MaxTrials, "max-trials", 0, "maximum number of pairs of executions; 0 = by the claim, 10,000 to 100,000")
	fs.IntVar(&o.Measure, "measure", 0, "maximum number of pairs of executions after a violation, which raise its lower bound\ntowards the true epsilon; 2000 takes seconds to minutes")
	fs.IntVar(&o.Timing, "timing", 0, "number of pairs of executions after the verdict whose latencies are compared: a side\nchannel, reported beside the verdict; 0 = none")
	fs.BoolVar(&o.Recreate, "recreate", false, "make the copies anew from neighbours.source for each pair of executions: the way to audit\nstored noise (a materialised view, a default), for small data")
	fs.BoolVar(&o.Shrink, "shrink", false, "after a violation, take rows away from new copies of D0 and D1 while it still shows, and\nreport the smallest pair")
	fs.DurationVar(&o.Timeout, "statement-timeout", 30*time.Second, "time limit of a trial; a timeout is an outcome")
	fs.BoolVar(&o.Hoist, "hoist", true, "compute the deterministic part of the query once, if the role can create temporary tables")
	policyFlags(cmd, &o.Deterministic, &o.FloatingPoint)
	fs.BoolVar(&o.VaryText, "vary-text", false, "start each statement that confirms a violation with a comment that has a random number,\nto defeat a cache of results")
	fs.StringVar(&o.Plot, "plot", "", "directory for plots (SVG) of the neighbour that the report is about")
	dryRun := fs.Bool("dry-run", false, "execute nothing: show what would be replayed, the claim and its source, and how often")
	values := valuesFlag(cmd)
	format := "text"
	fs.VarP(choice{&format, []string{"text", "json", "sarif", "issue"}}, "output", "o", "text, json, sarif: SARIF 2.1.0 for CI, without values of rows, or issue: a violation as\nMarkdown for the maintainers of the engine")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		fs.Visit(func(flag *pflag.Flag) { o.Given[flag.Name] = true })
		if c, err := claimed(); err != nil {
			return err
		} else if c != "" {
			p := c.Headline()
			o.Curve, o.Epsilon, o.Delta = c, p.Epsilon, p.Delta
			o.Given["epsilon"], o.Given["delta"] = true, true
		}
		if o.Issue = format == "issue"; o.Issue && !*values {
			return errors.New("-o issue shows the statement and the distribution of the answers, which --values=false withholds: give only one of the two")
		}
		o.ShowRows = *values && format != "sarif"
		if o.Plot != "" && !*values {
			return errors.New("--plot shows values that --values=false withholds: give only one of the two")
		}
		if len(*sql) > 0 {
			o.SQL, o.Then = (*sql)[0], (*sql)[1:]
		}
		if *dryRun {
			plan, err := oneoff.Plan(cmd.Context(), env, o)
			if err != nil {
				return err
			}
			return write(env, plan, format == "json")
		}
		found, err := oneoff.Audit(cmd.Context(), env, o, progress(env.Stderr))
		if err != nil && *values {
			return &revealedError{err}
		}
		if err != nil {
			return err
		}
		if format == "sarif" {
			file := o.File
			if file == "" || file == "-" {
				file = o.Config
			}
			return conclude(env, found.SARIF(file, setup.Version), found.Verdict, false)
		}
		if x := found.Issue; x != nil {
			x.Version = version
			return conclude(env, issue{x}, found.Verdict, false)
		}
		return conclude(env, found.Shown(*values), found.Verdict, format == "json")
	}
	return cmd
}

// issue writes a violation for the maintainers of the engine.
type issue struct{ *read.Issue }

func (x issue) Write(w io.Writer) error {
	_, err := io.WriteString(w, x.Markdown())
	return err
}

// revealedError is an error for readers who are authorized to see the raw data: its text has the full messages of the
// server.
type revealedError struct{ cause error }

func (e *revealedError) Error() string { return withheld.Reveal(e.cause) }
func (e *revealedError) Unwrap() error { return e.cause }

// audits is what a bar counts that does not count pairs of trials.
const audits = "audits"

// progress returns a bar on a terminal, and a silent one elsewhere and before Begin.
func progress(w io.Writer) oneoff.Progress {
	bar := progressbar.DefaultSilent(1)
	return oneoff.Progress{
		Begin: func(what string, total int) {
			if terminal.Interactive(w) {
				each := "pairs"
				if what == audits {
					each = audits
				}
				bar = progressbar.NewOptions(total, progressbar.OptionSetWriter(w), progressbar.OptionSetDescription(what),
					progressbar.OptionShowCount(), progressbar.OptionShowIts(), progressbar.OptionSetItsString(each),
					progressbar.OptionClearOnFinish(), progressbar.OptionThrottle(100*time.Millisecond))
			}
		},
		Add: func(n int) { _ = bar.Add(n) },
		End: func() { _ = bar.Clear() },
	}
}
