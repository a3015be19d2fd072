package main

import (
	"errors"
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
	var since, until, period, newKey, verify, publicKey string
	cmd := &cobra.Command{
		Use: "report [ID]", Short: "Write a report for an auditor, with a signed manifest",
		Long: `Write a report about an audit, about all audits, or about a period: what was audited, what was found, how bad it is,
what gives a person away, the limits and the method in an auditor's words, and what it does not prove, with plots. A
report of a period has the coverage of the traffic, the verdicts of the period and the budgets as well. It is read
from the ledger; dpwatch need not run.

--dir is made. It receives report.html or report.json, which load nothing from elsewhere (a browser prints the first),
report.sarif for CI systems (SARIF 2.1.0: a violation is an error, an audit without a conclusion a warning or a note;
it never has values of rows or literals), and manifest.json: versions, hashes of the configuration, epochs, counts, verdicts and the SHA-256 of each file. With
--key, manifest.sig is its ed25519 signature; dpwatch report --verify checks both.

--new-key makes the key: an ed25519 key in PEM that only its owner may read (mode 0600). The public key, which readers
of reports need, goes to a file with the same name and .pub. Files that exist are not replaced. openssl reads both.

--verify checks the signature of a manifest, given by its path or that of its directory, and that the files beside it
are those of the manifest. With --public-key, the manifest must have been signed with that key; without it, anyone
could have signed it, and the output has the fingerprint of the key. It needs neither a configuration nor a database.

Values of rows and literals of statements are withheld without --reveal, unless log.reveal shows them. Units appear as
pseudonyms, never with their keys. Findings, with the five answers of dpwatch explain, are those of violations that
are not resolved; other audits are lines of a table.

Exit codes: 0 done, whatever the verdicts; 1 error, or a report that is not as it was signed.`,
		Example: `  dpwatch report --new-key report.key
  dpwatch report 3f9c --config dpwatch.yaml -o html,json --key report.key --dir finding-3f9c
  dpwatch report --period 30d --config dpwatch.yaml --key report.key
  dpwatch report --all --config dpwatch.yaml -o sarif --dir ci
  dpwatch report --since 2026-01-01 --until 2026-04-01 --config dpwatch.yaml -o json
  dpwatch report --verify finding-3f9c --public-key report.key.pub`,
	}
	fs := cmd.Flags()
	fs.StringVarP(&o.Config, "config", "c", "", "path of dpwatch.yaml (required, except with --new-key and --verify)")
	fs.BoolVar(&all, "all", false, "all audits in the ledger")
	fs.StringVar(&period, "period", "", "how far to look back: 30d, or 12h")
	fs.StringVar(&since, "since", "", "beginning of the period: a day in UTC (2026-01-01), or a time (2026-01-01T12:00:00Z)")
	fs.StringVar(&until, "until", "", "end of the period, likewise: the beginning of that day; default: now")
	fs.StringSliceVarP(&o.Formats, "output", "o", []string{"html"}, "html, json and sarif, separated by commas")
	fs.StringVar(&o.Key, "key", "", "file with the private key for the signature: --new-key makes one")
	fs.StringVar(&o.Dir, "dir", "dpwatch-report", "directory to make for the files")
	fs.BoolVar(&o.Reveal, "reveal", false, "show values of rows, and statements with their literals")
	fs.StringVar(&newKey, "new-key", "", "make a key for the signatures of reports, in this file")
	fs.StringVar(&verify, "verify", "", "verify the report with this manifest, or in this directory")
	fs.StringVar(&publicKey, "public-key", "", "with --verify: file with the public key that the manifest must have been signed with")
	cmd.MarkFlagsOneRequired("config", "new-key", "verify")
	for _, only := range []string{"new-key", "verify"} {
		for _, other := range []string{"config", "all", "period", "since", "until", "output", "key", "dir", "reveal"} {
			cmd.MarkFlagsMutuallyExclusive(only, other)
		}
	}
	cmd.MarkFlagsMutuallyExclusive("new-key", "verify")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		switch {
		case (newKey != "" || verify != "") && len(args) > 0:
			return fmt.Errorf("--new-key and --verify take no ID, here %q", args[0])
		case publicKey != "" && verify == "":
			return errors.New("--public-key is for --verify")
		case newKey != "":
			return makeReportKey(env, newKey)
		case verify != "":
			return verifyReport(env, verify, publicKey)
		}
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
			if f == "pdf" {
				return errors.New("-o pdf: reports are html or json: open report.html in a browser and print it")
			}
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
			fmt.Fprintln(env.Stderr, "dpwatch: warning: the manifest is not signed, so --verify rejects it: give --key")
		}
		return err
	}
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
