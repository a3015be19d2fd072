package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dpwatch/dpwatch/config"
	"github.com/dpwatch/dpwatch/replay"
	"github.com/dpwatch/dpwatch/replay/neighbours"
	"github.com/dpwatch/dpwatch/rewrite"
)

func configFlag(cmd *cobra.Command) *string {
	path := cmd.Flags().StringP("config", "c", "", "path of dpwatch.yaml (required)")
	if err := cmd.MarkFlagRequired("config"); err != nil {
		panic(err) // the flag was defined one line above
	}
	return path
}

// loadConfig reads and validates a file; every fault of it is in the error.
func loadConfig(env environment, path string) (config.Config, []byte, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return config.Config{}, nil, fmt.Errorf("%s does not exist: start from examples/dpwatch.yaml", path)
		}
		return config.Config{}, nil, fmt.Errorf("read the configuration: %w", err)
	}
	c, err := config.ParseAndCheck(path, data, env.Getenv)
	if err != nil {
		return c, nil, fmt.Errorf("the configuration has faults:\n%w", err)
	}
	// What only the stages can tell; New parses no SQL, so that this is right in the relay process too.
	if _, err := rewrite.New(rewriteOptions(c)); err != nil {
		return c, nil, fmt.Errorf("%s: %w", path, err)
	}
	return c, data, nil
}

// checkShadow prints the grants that the replay role needs, and a warning for what it has beyond them.
func checkShadow(ctx context.Context, env environment, c config.Config) error {
	options := replayOptions(c, nil)
	options.Warn = func(text string) { fmt.Fprintln(env.Stderr, "dpwatch: warning: "+text) }
	player, err := replay.New(options)
	if err != nil {
		return err
	}
	fmt.Fprintln(env.Stdout, "-- what the replay role needs in the shadow database, for an administrator to run there:")
	for _, grant := range player.Grants(append([]string{c.Shadow.D0}, c.Shadow.D1...)) {
		fmt.Fprintln(env.Stdout, grant+";")
	}
	if c.Neighbours.Configured() {
		if err := checkSet(ctx, env, c); err != nil {
			return err
		}
	}
	warnings, err := player.Check(ctx, c.Shadow.D0, c.Shadow.D1, bareNames(c.Privacy.Protected))
	for _, w := range warnings {
		fmt.Fprintln(env.Stderr, "dpwatch: warning: "+w)
	}
	if len(c.Shadow.Worlds) > 0 {
		fmt.Fprintln(env.Stdout, "-- whether each engine reads the copy of its own world is seen when run replays the first query")
	}
	return err
}

// checkSet prints which set of copies there is, and refuses one that is not what the configuration names.
func checkSet(ctx context.Context, env environment, c config.Config) error {
	o, err := neighbourOptions(c)
	if err != nil {
		return err
	}
	set, err := neighbours.Current(ctx, o.Target, o.Control) // the record is for its owner alone
	if err != nil {
		return err
	}
	if set.D0 != c.Shadow.D0 || !slices.Equal(set.D1, c.Shadow.D1) || string(set.Relation) != c.Neighbours.Relation {
		return fmt.Errorf("the copies are %s and %s, relation %s, and the configuration names %s and %s, relation %s: run `dpwatch neighbours refresh`, or correct shadow.d0, shadow.d1 and neighbours.relation",
			set.D0, strings.Join(set.D1, ", "), set.Relation, c.Shadow.D0, strings.Join(c.Shadow.D1, ", "), c.Neighbours.Relation)
	}
	_, err = fmt.Fprintf(env.Stdout, "-- the copies: epoch %d, made %s, relation %s, method %s\n", set.Epoch, set.Made.UTC().Format(time.RFC3339), set.Relation, set.Method)
	return err
}

func configCommand(env environment) *cobra.Command {
	group := &cobra.Command{Use: "config", Short: "Check or print a configuration", Args: cobra.NoArgs}

	check := &cobra.Command{
		Use: "check", Short: "Tell every fault of a configuration, with file and line", Args: cobra.NoArgs,
		Long: `Tell every fault of a configuration, with file and line. With --connect the shadow database is looked at too: whether
the copies are there and alike, and what the replay role may do; the GRANTs that it needs are printed.`,
		Example: "  dpwatch config check --config dpwatch.yaml\n  dpwatch config check --config dpwatch.yaml --connect",
	}
	checkPath := configFlag(check)
	connect := check.Flags().Bool("connect", false, "check the shadow database and the replay role's rights as well")
	check.RunE = func(cmd *cobra.Command, _ []string) error {
		c, _, err := loadConfig(env, *checkPath)
		if err != nil {
			return err
		}
		if *connect {
			if err := checkShadow(cmd.Context(), env, c); err != nil {
				return revealed(err)
			}
		}
		_, err = fmt.Fprintf(env.Stdout, "%s: no faults\n", *checkPath)
		return err
	}

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
