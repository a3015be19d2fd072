package main

import (
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dpwatch/dpwatch/internal/app/reports"
)

func reportKeyCommand(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use: "key", Short: "Make a key for the signatures of reports",
		Long: `Make an ed25519 key for the signatures of reports, in PEM. Only its owner may read the file (mode 0600). The public key, which readers of reports need, goes to a
file with the same name and .pub. Files that exist are not replaced. openssl reads both.`,
		Example: `  dpwatch report key -o report.key`,
	}
	output := cmd.Flags().StringP("output", "o", "report.key", "the file to write")
	cmd.RunE = func(_ *cobra.Command, _ []string) error {
		private, public, err := reports.NewKey()
		if err != nil {
			return err
		}
		if _, err := os.Stat(*output + ".pub"); err == nil {
			return fmt.Errorf("%s.pub exists and is not replaced: remove it or name another file: %w", *output, fs.ErrExist)
		}
		if err = writeNew(*output, string(private)); err == nil {
			err = writeNew(*output+".pub", string(public))
		}
		if err == nil {
			_, err = fmt.Fprintf(env.Stdout, "%s: keep it secret\n%s.pub: for those who verify reports\n", *output, *output)
		}
		return err
	}
	return cmd
}

func reportVerifyCommand(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use: "verify PATH", Short: "Verify the signature and the files of a report",
		Long: `Verify the signature of a manifest, given by its path or that of its directory, and that the files beside it are those of the manifest. With --public-key, the
manifest must have been signed with that key; without it, anyone could have signed it, and the output has the fingerprint of the key. Needs neither a configuration nor a database.

Exit codes: 0 the report is as it was signed; 1 it is not, and the output says what is wrong.`,
		Example: `  dpwatch report verify finding-3f9c --public-key report.key.pub`,
	}
	public := cmd.Flags().String("public-key", "", "file with the public key that the manifest must have been signed with")
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		v, err := reports.Verify(args[0], *public)
		if err != nil {
			return fmt.Errorf("%s: %w", args[0], err)
		}
		if len(v.Faults) > 0 {
			return fmt.Errorf("%s: %s", args[0], strings.Join(v.Faults, "; "))
		}
		fmt.Fprintf(env.Stdout, "%s: %d files are as they were signed on %s by dpwatch %s with key %s\n", v.Dir, len(v.Manifest.Files), v.Manifest.Created.Format("2006-01-02 15:04:05 MST"), v.Manifest.Version, v.Key)
		if !v.KeyGiven {
			fmt.Fprintln(env.Stderr, "dpwatch: warning: who signed it is not known: compare the key, or give --public-key")
		}
		return nil
	}
	return cmd
}
