package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/dpwatch/dpwatch/config"
	"github.com/dpwatch/dpwatch/internal/web"
	"github.com/dpwatch/dpwatch/rewrite"
)

func configFlag(cmd *cobra.Command) *string {
	path := cmd.Flags().StringP("config", "c", "", "path of dpwatch.yaml (required)")
	if err := cmd.MarkFlagRequired("config"); err != nil {
		panic(err) // the flag was defined one line above
	}
	return path
}

// loadConfig reads and validates a file; every fault of it is in the error. Resolved is the same for the auditor process.
func loadConfig(env environment, path string) (config.Config, config.Resolved, error) {
	data, err := readConfig(path)
	if err != nil {
		return config.Config{}, config.Resolved{}, err
	}
	c, resolved, err := config.ParseAndCheck(path, data, env.Getenv)
	if err != nil {
		return c, resolved, fmt.Errorf("the configuration has faults:\n%w", err)
	}
	// What only the stages can tell; New parses no SQL, so that this is right in the relay process too.
	if _, err := rewrite.New(rewriteOptions(c)); err != nil {
		return c, resolved, fmt.Errorf("%s: %w", path, err)
	}
	for _, l := range c.Admin.AllListeners() {
		if l.TokenFile == "" {
			continue
		}
		if err := web.CheckTokenFile(l.TokenFile); err != nil {
			return c, resolved, fmt.Errorf("%s: admin.token_file: %w", path, err)
		}
	}
	return c, resolved, nil
}

func readConfig(path string) ([]byte, error) {
	data, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s does not exist: start from examples/dpwatch.yaml", path)
	case err != nil:
		return nil, fmt.Errorf("read the configuration: %w", err)
	case bytes.HasPrefix(data, []byte{0xFF, 0xFE}) || bytes.HasPrefix(data, []byte{0xFE, 0xFF}):
		return nil, fmt.Errorf("%s is UTF-16: save it as UTF-8", path)
	}
	return bytes.TrimPrefix(data, []byte("\uFEFF")), nil // the byte order mark of some editors
}

func configCommand(env environment) *cobra.Command {
	group := &cobra.Command{Use: "config", Short: "Check or print a configuration", Args: cobra.NoArgs}

	check := checkCommand(env)

	show := &cobra.Command{
		Use: "print", Short: "Print the configuration with every default filled in and secrets hidden", Args: cobra.NoArgs,
	}
	showPath := configFlag(show)
	show.RunE = func(*cobra.Command, []string) error {
		c, _, err := loadConfig(env, *showPath)
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
