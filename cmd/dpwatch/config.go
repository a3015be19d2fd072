package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/dpwatch/dpwatch/config"
	"github.com/dpwatch/dpwatch/internal/app/check"
	"github.com/dpwatch/dpwatch/internal/app/setup"
	"github.com/dpwatch/dpwatch/internal/preflight"
)

func configFlag(cmd *cobra.Command) *string {
	path := cmd.Flags().StringP("config", "c", "", "path of dpwatch.yaml (required)")
	if err := cmd.MarkFlagRequired("config"); err != nil {
		panic(err) // the flag was defined above
	}
	return path
}

func configCommand(env environment) *cobra.Command {
	group := &cobra.Command{Use: "config", Short: "Check or print a configuration", Args: cobra.NoArgs}

	check := checkCommand(env)

	show := &cobra.Command{
		Use: "print", Short: "Print the configuration with every default filled in and secrets hidden", Args: cobra.NoArgs,
	}
	showPath := configFlag(show)
	show.Flags().Bool("effective", true, "every key with the value in force: that of the file, with ${...} replaced, or the default")
	_ = show.Flags().MarkHidden("effective") // there is no other form; the name is what other programs call it
	show.RunE = func(*cobra.Command, []string) error {
		c, _, err := setup.Load(env, *showPath)
		if err != nil {
			return err
		}
		text, err := config.Print(c)
		if err != nil {
			return err
		}
		_, err = env.Stdout.Write(text)
		return err
	}
	schema := &cobra.Command{
		Use: "schema", Short: "Print the JSON schema of a configuration, for editors", Args: cobra.NoArgs,
		Long: `Print the JSON schema (draft 2020-12) of a configuration, for editors. With the YAML language server, write it to a file and begin
dpwatch.yaml with: # yaml-language-server: $schema=dpwatch.schema.json`,
		Example: "  dpwatch config schema > dpwatch.schema.json",
		RunE: func(*cobra.Command, []string) error {
			_, err := env.Stdout.Write(config.Schema())
			return err
		},
	}
	group.AddCommand(check, show, schema)
	return group
}

func checkCommand(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use: "check", Short: "Report every fault of a configuration, with file and line",
		Long: `Report every fault of a configuration, with file and line, and as warnings the settings without effect: rules and routes that match nothing, and keys
of what is off.

With --connect, the command also checks everything that dpwatch run needs: that addresses can be listened on, engines answer
(with TLS if it is configured), connection strings work, the copies exist with the same columns and can be read, public tables
and declared functions exist where replays find them; also row security, temporary tables, and privileges of the replay role
beyond reading; and the directory of the spool. Nothing is changed. Every check is listed as ok, warning, fault or unchecked, with a remedy; missing GRANTs are
printed as statements, by database. The exit code is 1 if there is a fault.`,
		Example: `  dpwatch config check --config dpwatch.yaml
  dpwatch config check --config dpwatch.yaml --connect
  dpwatch config check --config dpwatch.yaml --connect -o json`,
	}
	path := configFlag(cmd)
	connect := cmd.Flags().Bool("connect", false, "check databases, engines, addresses and rights as well")
	asJSON := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, _, err := setup.Load(env, *path)
		if err != nil {
			if !asJSON() {
				return err
			}
			return errors.Join(json.NewEncoder(env.Stdout).Encode(fileErrors(*path, err)), &exitError{code: exitFailure})
		}
		checks := []preflight.Check{{Name: "configuration", Object: *path, Status: preflight.OK, Message: "no faults in the file"}}
		for _, u := range c.Unused() {
			checks = append(checks, preflight.Check{Name: "configuration", Object: u.Path, Status: preflight.Warning, Message: u.Text})
		}
		if *connect {
			checks = append(checks, preflight.Run(cmd.Context(), check.Checks(c)...)...)
		}
		return writeChecks(env, *path, checks, asJSON(), *connect)
	}
	return cmd
}

// fileErrors returns the errors of a configuration file as checks.
func fileErrors(path string, err error) []preflight.Check {
	var found config.Errors
	if !errors.As(err, &found) {
		return []preflight.Check{{Name: "configuration", Object: path, Status: preflight.Fault, Message: err.Error()}}
	}
	var checks []preflight.Check
	for _, f := range found {
		object := f.File
		if f.Line > 0 {
			object += fmt.Sprintf(":%d", f.Line)
		}
		checks = append(checks, preflight.Check{Name: "configuration", Object: object, Status: preflight.Fault, Message: strings.TrimPrefix(f.Path+": "+f.Text, ": ")})
	}
	return checks
}

// writeChecks writes all checks and returns an error if one is a fault.
func writeChecks(env environment, path string, checks []preflight.Check, asJSON, connected bool) error {
	faults := preflight.Count(checks, preflight.Fault)
	if asJSON {
		encoder := json.NewEncoder(env.Stdout)
		encoder.SetIndent("", "  ")
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(checks); err != nil || faults == 0 {
			return err
		}
		return &exitError{code: exitFailure}
	}
	if connected || len(checks) > 1 {
		if err := printChecks(env.Stdout, checks); err != nil {
			return err
		}
	}
	if faults > 0 {
		return fmt.Errorf("%s: %d fault%s, %d warnings", path, faults, map[bool]string{true: "s"}[faults > 1], preflight.Count(checks, preflight.Warning))
	}
	_, err := fmt.Fprintf(env.Stdout, "%s: no faults\n", path)
	return err
}

// printChecks writes a line for each check, followed by its fix, and the missing grants at the end.
func printChecks(w io.Writer, checks []preflight.Check) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, c := range checks {
		status := string(c.Status)
		if c.Status == preflight.Fault {
			status = "FAULT"
		}
		fmt.Fprintf(table, "%s\t%s\t%s: %s\n", status, c.Name, c.Object, c.Message)
		if c.Fix != "" && !strings.HasPrefix(c.Fix, "GRANT ") {
			fmt.Fprintf(table, "\t\t  -> %s\n", c.Fix)
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	databases, grants := preflight.Grants(checks)
	for _, database := range databases {
		fmt.Fprintf(w, "\n-- missing rights, for an administrator to grant in database %s:\n", database)
		for _, g := range grants[database] {
			fmt.Fprintln(w, g+";")
		}
	}
	if len(databases) > 0 {
		fmt.Fprintln(w)
	}
	return nil
}
