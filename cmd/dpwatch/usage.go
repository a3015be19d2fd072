package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/dpwatch/dpwatch/internal/spelling"
)

// helpUsage adds suggestions to the errors of mistyped commands, flags and values, for root and all its subcommands.
func helpUsage(root *cobra.Command) {
	root.SetFlagErrorFunc(flagError)
	var visit func(*cobra.Command)
	visit = func(cmd *cobra.Command) {
		switch _, argument, takesOne := strings.Cut(cmd.Use, " "); {
		case strings.HasPrefix(argument, "["):
			cmd.Args = cobra.MaximumNArgs(1)
		case takesOne:
			cmd.Args = oneArgument(argument)
		default:
			cmd.Args = noArguments
		}
		if cmd.HasSubCommands() && !cmd.Runnable() {
			cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		}
		for _, c := range cmd.Commands() {
			visit(c)
		}
	}
	visit(root)
}

// oneArgument requires one argument, which the usage line names.
func oneArgument(name string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 || args[0] == "" {
			return fmt.Errorf("%s takes one argument, %s, not %d: see %s --help", cmd.CommandPath(), name, len(args), cmd.CommandPath())
		}
		return nil
	}
}

// noArguments rejects arguments: a mistyped command, or a word meant as a flag's value.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if !cmd.HasSubCommands() {
		return fmt.Errorf("%s takes only flags, not the argument %q: see %s --help", cmd.CommandPath(), args[0], cmd.CommandPath())
	}
	var names []string
	for _, c := range cmd.Commands() {
		if !c.Hidden {
			names = append(names, c.Name())
		}
	}
	text := fmt.Sprintf("unknown command %q for %s", args[0], cmd.CommandPath())
	meant := spelling.Nearest(args[0], names)
	if meant == "" {
		for _, name := range cmd.SuggestionsFor(args[0]) { // names with this prefix
			meant = name
			break
		}
	}
	if meant != "" {
		return fmt.Errorf("%s: did you mean %s %s?", text, cmd.CommandPath(), meant)
	}
	return fmt.Errorf("%s: commands are %s", text, strings.Join(names, ", "))
}

// flagError adds a suggestion to an error of package pflag.
func flagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var value *pflag.InvalidValueError
	var missing *pflag.ValueRequiredError
	switch {
	case errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() == "":
		name := unknown.GetSpecifiedName()
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				names = append(names, f.Name)
			}
		})
		if meant := spelling.Nearest(name, names); meant != "" {
			return fmt.Errorf("unknown flag: --%s: did you mean --%s?", name, meant)
		}
		return fmt.Errorf("unknown flag: --%s: see %s --help", name, cmd.CommandPath())
	case errors.As(err, &unknown) && len(unknown.GetSpecifiedShortnames()) > 1:
		return fmt.Errorf("unknown flag: -%s: long flags take two hyphens, --%[1]s", unknown.GetSpecifiedShortnames())
	case errors.As(err, &value):
		return fmt.Errorf("--%s %q: must be %s", value.GetFlag().Name, value.GetValue(), valueForm(value.GetFlag().Value))
	case errors.As(err, &missing):
		return fmt.Errorf("--%s needs a value: %s", missing.GetFlag().Name, valueForm(missing.GetFlag().Value))
	}
	return err
}

// valueForm describes the values that a flag takes.
func valueForm(v pflag.Value) string {
	if c, ok := v.(choice); ok {
		return c.form()
	}
	switch v.Type() {
	case "float64":
		return "a number, for example 0.5"
	case "int", "int64", "uint":
		return "a whole number"
	case "duration":
		return "a duration with its unit, for example 30s or 500ms"
	case "bool":
		return "true or false"
	}
	return "a text"
}
