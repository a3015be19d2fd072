package main

import (
	"syscall"

	"github.com/spf13/cobra"

	"github.com/dpwatch/dpwatch/internal/app/findings"
	"github.com/dpwatch/dpwatch/internal/app/querypage"
)

// pageCommand is the child process that the relay starts for the page of a query; users do not run it.
func pageCommand(env environment) *cobra.Command {
	return &cobra.Command{
		Use: querypage.Command, Hidden: true, Args: cobra.NoArgs,
		Short: "Read an audit for its page; started by run and demo",
		RunE: func(cmd *cobra.Command, _ []string) error {
			_ = syscall.Setpriority(syscall.PRIO_PROCESS, 0, 10) // below the relay
			return findings.ServePage(cmd.Context(), env)
		},
	}
}
