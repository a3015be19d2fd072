//go:build man

package main

import "github.com/spf13/cobra"

// With the tag man, the program has a command that writes the man pages of packages.
func init() {
	buildSteps = append(buildSteps, &cobra.Command{
		Use: "man DIRECTORY", Hidden: true, Args: cobra.ExactArgs(1),
		Short: "Write a man page for each command into a directory, for packages",
		RunE: func(cmd *cobra.Command, args []string) error {
			return writeManPages(cmd.Root(), args[0])
		},
	})
}
