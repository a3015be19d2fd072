package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/dpwatch/dpwatch/internal/draft"
)

func initCommand(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use: "init", Short: "Write a configuration for a database, to be reviewed", Args: cobra.NoArgs,
		Long: `Read the catalog of a database and write a dpwatch.yaml with the likely privacy unit, the protected tables, how their rows belong to units, and the functions
with an argument for the epsilon. Every guess has a comment that says why: review it. Values of columns are compared with the unit's keys
in the server, for at most a minute; no value of a row and no password of --dsn is written.

--sql writes the statements for the roles, their rights and the shadow database. --passwords makes a random password for each role. A file that exists is not replaced.`,
		Example: `  dpwatch init --dsn postgres://postgres@127.0.0.1:5432/shop -o dpwatch.yaml --sql roles.sql --passwords passwords
  dpwatch init --dsn postgres://postgres@127.0.0.1:5432/shop --unit public.devices
  dpwatch init --dsn postgres://postgres@127.0.0.1:5432/shop --engine postgres://analyst@127.0.0.1:7431/shop`,
	}
	dsn := cmd.Flags().String("dsn", "", "the database with the protected tables (required)")
	if err := cmd.MarkFlagRequired("dsn"); err != nil {
		panic(err) // the flag was defined above
	}
	engine := cmd.Flags().String("engine", "", "the connection string of an engine with a port of its own, in front of the database (default: the database is the engine)")
	unit := cmd.Flags().String("unit", "", "the table with one row for each privacy unit, schema.table (default: guessed)")
	output := cmd.Flags().StringP("output", "o", "", "the file to write (default: standard output)")
	sqlOutput := cmd.Flags().String("sql", "", "the file for the statements that create roles and shadow database")
	passwords := cmd.Flags().String("passwords", "", "the directory for a random password of each role, one file each; the configuration and the SQL refer to them")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		directory := *passwords
		if directory != "" {
			var err error
			if directory, err = filepath.Abs(directory); err != nil {
				return err
			}
		}
		file, sql, err := draft.Make(cmd.Context(), *dsn, draft.Options{Unit: *unit, Engine: *engine, Passwords: directory})
		if err != nil {
			return err
		}
		if directory != "" {
			if err := makePasswords(directory); err != nil {
				return err
			}
		}
		if *sqlOutput != "" {
			if err := writeNew(*sqlOutput, sql); err != nil {
				return err
			}
		}
		if *output != "" {
			return writeNew(*output, file)
		}
		_, err = fmt.Fprint(env.Stdout, file)
		return err
	}
	return cmd
}

// makePasswords writes a random password for each role.
func makePasswords(directory string) error {
	if err := os.MkdirAll(directory, 0o700); err != nil {
		return err
	}
	for _, role := range draft.Roles() {
		if err := writeNew(filepath.Join(directory, role), rand.Text()+"\n"); err != nil {
			return err
		}
	}
	return nil
}

// writeNew writes a file that only its owner can read. It does not replace one.
func writeNew(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) // #nosec G304 -- the user names the file
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s exists and is not replaced: remove it or name another file", path)
	}
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}
