package main

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/app"
)

type environment = app.Environment

// The exit codes, a contract with scripts.
const (
	exitDone         = 0 // done, or no evidence
	exitFault        = 1 // usage, configuration or runtime fault
	exitViolation    = 2
	exitInconclusive = 3
)

// exitError ends a command with an exit code; its text, if any, is printed.
type exitError struct {
	code int
	text string
}

func (e *exitError) Error() string { return e.text }

func exitCode(err error) int {
	var e *exitError
	if errors.As(err, &e) {
		return e.code
	}
	return exitFault
}

func rootCommand(env environment) *cobra.Command {
	root := &cobra.Command{
		Use:   "dpwatch",
		Short: "Continuous auditing of differential privacy in production",
		Long: `dpwatch stands in front of a differentially private query engine that speaks the PostgreSQL protocol,
watches the live queries, replays each on neighbouring copies of the data, and raises an alert when what a
query leaks exceeds what the engine claims.

Exit codes: 0 done or no evidence, 1 usage, configuration or runtime fault, 2 violation, 3 inconclusive.`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Version:       versionLine(),
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.AddCommand(
		demoCommand(env), runCommand(env), healthCommand(env), auditCommand(env), analyzeCommand(env), rewriteCommand(env),
		neighboursCommand(env), configCommand(env), versionCommand(env), auditorCommand(env),
	)
	root.SetVersionTemplate("{{.Version}}\n")
	helpUsage(root)
	return root
}

// outputFlag adds -o and returns a function that validates its value.
func outputFlag(cmd *cobra.Command) (asJSON func() (bool, error)) {
	format := cmd.Flags().StringP("output", "o", "text", "text or json")
	return func() (bool, error) {
		switch *format {
		case "text", "json":
			return *format == "json", nil
		}
		return false, fmt.Errorf("--output %q: must be text or json", *format)
	}
}

// conclude writes a report and returns the verdict as an exit code.
func conclude(env environment, c app.Conclusion, js bool) error {
	var err error
	if js {
		encoder := json.NewEncoder(env.Stdout)
		encoder.SetIndent("", "  ")
		err = encoder.Encode(c)
	} else {
		err = c.Write(env.Stdout)
	}
	if err != nil {
		return err
	}
	switch c.Verdict {
	case analysis.Violation:
		return &exitError{code: exitViolation}
	case analysis.Inconclusive:
		return &exitError{code: exitInconclusive}
	}
	return nil
}
