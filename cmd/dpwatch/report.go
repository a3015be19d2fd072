package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dpwatch/dpwatch/internal/app/reports"
)

func reportCommand(env environment) *cobra.Command {
	var o reports.Options
	var all bool
	var since, until, period string
	cmd := &cobra.Command{
		Use: "report [ID]", Short: "Write a report for an auditor, with a signed manifest",
		Long: `Write a report about an audit, about all audits, or about a period: what was audited, what was found, how bad it is, what gives a person away, the
limits and the method in an auditor's words, and what it does not prove, with plots. A report of a period has the coverage of the traffic, the verdicts of the period and the budgets as well.
It is read from the ledger; dpwatch need not run.

--dir is made. It receives report.html, report.json or report.pdf, which load nothing from elsewhere, and manifest.json: versions, hashes of
the configuration, epochs, counts, verdicts and the SHA-256 of each file. With --key, manifest.sig is its ed25519 signature; dpwatch report verify checks both.

Values of rows and literals of statements are withheld without --reveal, unless log.values or log.sql is set. Units appear as pseudonyms, never with their keys. Findings, with the five
answers of dpwatch explain, are those of violations that are not resolved; other audits are lines of a table.

Exit codes: 0 done, whatever the verdicts; 1 error.`,
		Example: `  dpwatch report key -o report.key
  dpwatch report 3f9c --config dpwatch.yaml -o html,pdf --key report.key --dir finding-3f9c
  dpwatch report --period 30d --config dpwatch.yaml --key report.key
  dpwatch report --since 2026-01-01 --until 2026-04-01 --config dpwatch.yaml -o json
  dpwatch report verify finding-3f9c --public-key report.key.pub`,
	}
	fs := cmd.Flags()
	fs.StringVarP(&o.Config, "config", "c", "", "path of dpwatch.yaml (required)")
	fs.BoolVar(&all, "all", false, "all audits in the ledger")
	fs.StringVar(&period, "period", "", "how far to look back: 30d, or 12h")
	fs.StringVar(&since, "since", "", "beginning of the period: a day in UTC (2026-01-01), or a time (2026-01-01T12:00:00Z)")
	fs.StringVar(&until, "until", "", "end of the period, likewise: the beginning of that day; default: now")
	fs.StringSliceVarP(&o.Formats, "output", "o", []string{"html"}, "html, json and pdf, separated by commas")
	fs.StringVar(&o.Key, "key", "", "file with the private key for the signature: dpwatch report key makes one")
	fs.StringVar(&o.Dir, "dir", "dpwatch-report", "directory to make for the files")
	fs.BoolVar(&o.Reveal, "reveal", false, "show values of rows, and statements with their literals")
	if err := cmd.MarkFlagRequired("config"); err != nil {
		panic(err) // the flag was defined above
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			o.ID = args[0]
		}
		err := reportPeriod(&o, period, since, until)
		if err == nil {
			err = o.Check(all)
		}
		if err != nil {
			return err
		}
		for _, f := range o.Formats {
			if !slices.Contains(reports.Formats(), f) {
				return fmt.Errorf("-o %s: must be %s", f, strings.Join(reports.Formats(), ", "))
			}
		}
		r, err := reports.New(cmd.Context(), env, o)
		if err != nil {
			return err
		}
		files, err := reports.Write(r, o)
		for _, f := range files {
			fmt.Fprintln(env.Stdout, f)
		}
		if err == nil && o.Key == "" {
			fmt.Fprintln(env.Stderr, "dpwatch: warning: the manifest is not signed, so dpwatch report verify rejects it: give --key")
		}
		return err
	}
	cmd.AddCommand(reportKeyCommand(env), reportVerifyCommand(env))
	return cmd
}

// reportPeriod reads the flags of the period.
func reportPeriod(o *reports.Options, period, since, until string) (err error) {
	if period != "" {
		if since != "" || until != "" {
			return fmt.Errorf("--period %s: give either --period, or --since and --until", period)
		}
		length, err := parsePeriod(period)
		o.Since = time.Now().UTC().Add(-length)
		return err
	}
	if o.Since, err = parseDay("--since", since); err == nil {
		o.Until, err = parseDay("--until", until)
	}
	return err
}

// parsePeriod reads a number of days or a duration of Go.
func parsePeriod(text string) (time.Duration, error) {
	const longest = 100 * 365
	if number, ok := strings.CutSuffix(text, "d"); ok {
		if days, err := strconv.Atoi(number); err == nil && days > 0 && days <= longest {
			return time.Duration(days) * 24 * time.Hour, nil
		}
	} else if d, err := time.ParseDuration(text); err == nil && d > 0 {
		return d, nil
	}
	return 0, fmt.Errorf("--period %s: must be a number of days such as 30d, or a duration such as 12h", text)
}

// parseDay reads a day in UTC or a time; "" = zero.
func parseDay(flag, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.DateOnly, time.RFC3339} {
		if t, err := time.Parse(layout, text); err == nil {
			return t.UTC(), nil
		}
	}
	return time.Time{}, fmt.Errorf("%s %s: must be a day such as 2027-01-31, or a time such as 2027-01-31T12:00:00Z", flag, text)
}
