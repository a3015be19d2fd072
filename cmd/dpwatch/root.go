package main

import (
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/config"
	"github.com/dpwatch/dpwatch/internal/app/setup"
)

type environment = setup.Environment

// The exit codes, a contract with scripts.
const (
	exitDone         = 0 // done, or no evidence
	exitFailure      = 1 // usage, configuration or runtime error
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
	return exitFailure
}

// buildSteps are commands that only the program of a build has; see man.go.
var buildSteps []*cobra.Command

func rootCommand(env environment) *cobra.Command {
	root := &cobra.Command{
		Use:   "dpwatch",
		Short: "Continuous auditing of differential privacy in production",
		Long: `dpwatch is a proxy for a differentially private query engine with the PostgreSQL protocol. It captures the
queries of its clients, replays them on neighbouring copies of the data, and raises an alert when a query leaks
more than the engine claims.

Exit codes: 0 done or no evidence, 1 usage, configuration or runtime error, 2 violation, 3 inconclusive.`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Version:       versionLine(),
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	for _, g := range []struct {
		id, title string
		commands  []*cobra.Command
	}{
		{"setup", "Set up", []*cobra.Command{initCommand(env), configCommand(env), doctorCommand(env), neighboursCommand(env), migrateCommand(env)}},
		{"run", "Run", []*cobra.Command{runCommand(env), workerCommand(env)}},
		{"look", "Look", []*cobra.Command{statusCommand(env), coverageCommand(env), budgetsCommand(env), explainCommand(env), reportCommand(env)}},
		{"act", "Act", []*cobra.Command{auditsCommand(env), alertsCommand(env)}},
		{"query", "One query, without a sidecar", []*cobra.Command{
			supervised(env, auditCommand(env), showsValues("values")), supervised(env, analyzeCommand(env), showsValues("values")), rewriteCommand(env),
		}},
		{"lab", "Lab", []*cobra.Command{supervised(env, demoCommand(env), ownData), supervised(env, calibrateCommand(env), ownData), generateCommand(env)}},
	} {
		root.AddGroup(&cobra.Group{ID: g.id, Title: g.title + ":"})
		for _, cmd := range g.commands {
			cmd.GroupID = g.id
		}
		root.AddCommand(g.commands...)
	}
	root.AddCommand(versionCommand(env), completionCommand(env), auditorCommand(env), pageCommand(env))
	root.AddCommand(buildSteps...)
	cobra.EnableCommandSorting = false
	root.SetVersionTemplate("{{.Version}}\n")
	helpUsage(root)
	return root
}

// choice is the value of a flag that takes one of several words.
type choice struct {
	value *string
	words []string
}

func (c choice) String() string { return *c.value }

// Type returns the name of the type in help texts.
func (c choice) Type() string { return "string" }

// Set accepts one of the words.
func (c choice) Set(text string) error {
	if !slices.Contains(c.words, text) {
		return errors.New("must be " + c.form())
	}
	*c.value = text
	return nil
}

// form lists the words: "a, b or c".
func (c choice) form() string {
	last := len(c.words) - 1
	return strings.Join(c.words[:last], ", ") + " or " + c.words[last]
}

// outputFlag adds -o. The function that it returns reports whether the output is JSON.
func outputFlag(cmd *cobra.Command) (asJSON func() bool) {
	format := "text"
	cmd.Flags().VarP(choice{&format, []string{"text", "json"}}, "output", "o", "text or json")
	return func() bool { return format == "json" }
}

// policyFlags adds --deterministic and --floating-point.
func policyFlags(cmd *cobra.Command, deterministic, floatingPoint *string) {
	*deterministic, *floatingPoint = "violation", "violation"
	cmd.Flags().Var(choice{deterministic, config.Policies()}, "deterministic",
		"verdict on answers that never vary and differ between D0 and D1: violation, warning (inconclusive), or\nignore (inconclusive, without a warning)")
	cmd.Flags().Var(choice{floatingPoint, config.Policies()}, "floating-point",
		"lowest bits of numbers that show the dataset are a violation, a warning beside the verdict on the rest,\nor not compared: violation, warning or ignore")
}

// valuesFlag adds --values, for commands whose user holds the data or the credentials.
func valuesFlag(cmd *cobra.Command) *bool {
	return cmd.Flags().Bool("values", true, "show values of rows: group keys, texts, thresholds, the server's messages; false withholds them")
}

// conclude writes a report. It returns an exitError with the exit code of the verdict, or nil for no evidence.
func conclude(env environment, report writer, verdict analysis.Verdict, asJSON bool) error {
	if err := write(env, report, asJSON); err != nil {
		return err
	}
	switch verdict {
	case analysis.Violation:
		return &exitError{code: exitViolation}
	case analysis.Inconclusive:
		return &exitError{code: exitInconclusive}
	}
	return nil
}
