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

	show := &cobra.Command{
		Use: "print", Short: "Print the configuration with every default filled in and secrets hidden, or the schema of the file", Args: cobra.NoArgs,
		Long: `Print the configuration with every default filled in and secrets hidden. With --schema, print the JSON schema (draft 2020-12) of the file, for editors:
with the YAML language server, write it to a file and begin dpwatch.yaml with: # yaml-language-server: $schema=dpwatch.schema.json`,
		Example: `  dpwatch config print --config dpwatch.yaml
  dpwatch config print --schema > dpwatch.schema.json`,
	}
	var showPath string
	show.Flags().StringVarP(&showPath, "config", "c", "", "path of dpwatch.yaml")
	schema := show.Flags().Bool("schema", false, "print the JSON schema of the file instead")
	show.MarkFlagsOneRequired("config", "schema")
	show.MarkFlagsMutuallyExclusive("config", "schema")
	show.Flags().Bool("effective", true, "every key with the value in force: that of the file, with ${...} replaced, or the default")
	_ = show.Flags().MarkHidden("effective") // there is no other form; the name is what other programs call it
	show.RunE = func(*cobra.Command, []string) error {
		if *schema {
			_, err := env.Stdout.Write(config.Schema())
			return err
		}
		c, _, err := setup.Load(env, showPath)
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
	group.AddCommand(checkCommand(env), show)
	return group
}

func checkCommand(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use: "check", Short: "Report every fault of a configuration, with file and line",
		Long: `Report every fault of a configuration, with file and line, and as warnings the settings without effect: rules and routes that match nothing, and keys
of what is off.

Except for privacy.paths, whose columns are read from neighbours.source, it connects to nothing: dpwatch doctor examines a deployment. The exit code is 1 if
there is a fault.`,
		Example: `  dpwatch config check --config dpwatch.yaml
  dpwatch config check --config dpwatch.yaml -o json`,
	}
	path := configFlag(cmd)
	asJSON := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, checks, err := checkFile(env, *path, asJSON())
		if err != nil {
			return err
		}
		for _, one := range c.AllEngines() {
			if len(one.Privacy.Paths) > 0 && one.Neighbours.Configured() {
				checks = append(checks, check.CheckPaths(cmd.Context(), one, false)...)
			}
		}
		return writeChecks(env, *path, checks, asJSON(), false)
	}
	return cmd
}

// checkFile loads a configuration and returns what it says about the file. As JSON, the faults are written as checks.
func checkFile(env environment, path string, asJSON bool) (config.Config, []preflight.Check, error) {
	c, _, err := setup.Load(env, path)
	if err != nil {
		if !asJSON {
			return c, nil, err
		}
		return c, nil, errors.Join(json.NewEncoder(env.Stdout).Encode(fileErrors(path, err)), &exitError{code: exitFailure})
	}
	checks := []preflight.Check{{Name: "configuration", Object: path, Status: preflight.OK, Message: "no faults in the file"}}
	for _, u := range c.Unused() {
		checks = append(checks, preflight.Check{Name: "configuration", Object: u.Path, Status: preflight.Warning, Message: u.Text})
	}
	return c, checks, nil
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
