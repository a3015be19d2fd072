package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// shells are those for which completionCommand has a script.
var shells = []string{"bash", "zsh", "fish", "powershell"}

func completionCommand(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use: "completion SHELL", Short: "Print the completion script for a shell: " + strings.Join(shells, ", "), ValidArgs: shells,
		Long: `Print the completion script for bash, zsh, fish or powershell. Packages install it; without one:`,
		Example: `  dpwatch completion bash > /etc/bash_completion.d/dpwatch
  dpwatch completion zsh > "${fpath[1]}/_dpwatch"
  dpwatch completion fish > ~/.config/fish/completions/dpwatch.fish`,
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		root := cmd.Root()
		switch slices.Index(shells, args[0]) {
		case 0:
			return root.GenBashCompletionV2(env.Stdout, true)
		case 1:
			return root.GenZshCompletion(env.Stdout)
		case 2:
			return root.GenFishCompletion(env.Stdout, true)
		case 3:
			return root.GenPowerShellCompletionWithDesc(env.Stdout)
		}
		return fmt.Errorf("no completion script for %q: shells are %s", args[0], strings.Join(shells, ", "))
	}
	return cmd
}
