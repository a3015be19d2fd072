package main

import (
	"github.com/spf13/cobra"

	"github.com/dpwatch/dpwatch/config"
	"github.com/dpwatch/dpwatch/internal/app"
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
	show.RunE = func(*cobra.Command, []string) error {
		c, _, err := app.Load(env, *showPath)
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
	group.AddCommand(check, show)
	return group
}
