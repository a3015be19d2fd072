package main

import (
	"errors"
	"net"
	"os"

	"github.com/spf13/cobra"

	"github.com/dpwatch/dpwatch/internal/app/auditor"
	"github.com/dpwatch/dpwatch/internal/supervise"
)

// auditorCommand is the child process that the relay starts; users do not run it.
func auditorCommand(env environment) *cobra.Command {
	return &cobra.Command{
		Use: "auditor", Hidden: true, Args: cobra.NoArgs,
		Short: "The auditor process; started by run and demo",
		RunE: func(cmd *cobra.Command, _ []string) error {
			defer outlive(func() {})()
			file := os.NewFile(supervise.LinkFD, "relay")
			conn, err := net.FileConn(file)
			if err != nil {
				return errors.New("the command auditor is internal and started by dpwatch run: use dpwatch run --config FILE")
			}
			_ = file.Close()
			return auditor.Run(cmd.Context(), env, conn)
		},
	}
}
