package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dpwatch/dpwatch/internal/app/setup"
)

// writeManPages writes the pages of a command and of its subcommands, except those that help does not list.
func writeManPages(cmd *cobra.Command, dir string) error {
	cmd.InitDefaultHelpFlag()
	if err := os.WriteFile(filepath.Join(dir, manName(cmd)+".1"), []byte(manPage(cmd)), 0o644); err != nil {
		return fmt.Errorf("man page of %s: %w", cmd.CommandPath(), err)
	}
	for _, c := range cmd.Commands() {
		if !c.IsAvailableCommand() || c.Name() == "completion" {
			continue
		}
		if err := writeManPages(c, dir); err != nil {
			return err
		}
	}
	return nil
}

func manName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// manPage returns the page of one command, in the macros of man(7). The text of --help keeps its lines.
func manPage(cmd *cobra.Command) string {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH %q 1 \"\" %q \"dpwatch manual\"\n", strings.ToUpper(manName(cmd)), "dpwatch "+setup.Version)
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", roff(manName(cmd)), roff(cmd.Short))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.B %s\n", roff(cmd.UseLine()))
	section := func(title, text string) {
		if text != "" {
			fmt.Fprintf(&b, ".SH %s\n.nf\n%s\n.fi\n", title, roff(strings.TrimRight(text, "\n")))
		}
	}
	section("DESCRIPTION", cmd.Long)
	section("OPTIONS", cmd.LocalFlags().FlagUsages())
	section("EXAMPLES", cmd.Example)
	var also []string
	if cmd.HasParent() {
		also = append(also, manName(cmd.Parent())+"(1)")
	}
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() && c.Name() != "completion" {
			also = append(also, manName(c)+"(1)")
		}
	}
	fmt.Fprintf(&b, ".SH SEE ALSO\n%s\n", roff(strings.Join(also, ", ")))
	return b.String()
}

// roff escapes what troff would interpret: backslashes, hyphens that are minus signs, and periods and quotes at the
// beginning of a line.
func roff(text string) string {
	lines := strings.Split(strings.NewReplacer(`\`, `\e`, "-", `\-`, "\t", "    ").Replace(text), "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
