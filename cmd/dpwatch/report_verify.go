package main

import (
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/dpwatch/dpwatch/internal/app/reports"
)

// makeReportKey makes a key for the signatures of reports.
func makeReportKey(env environment, path string) error {
	private, public, err := reports.NewKey()
	if err != nil {
		return err
	}
	if _, err := os.Stat(path + ".pub"); err == nil {
		return fmt.Errorf("%s.pub exists and is not replaced: remove it or name another file: %w", path, fs.ErrExist)
	}
	if err = writeNew(path, string(private)); err == nil {
		err = writeNew(path+".pub", string(public))
	}
	if err == nil {
		_, err = fmt.Fprintf(env.Stdout, "%s: keep it secret\n%s.pub: for those who verify reports\n", path, path)
	}
	return err
}

// verifyReport verifies the signature and the files of a report. publicKey is the file of a key; "" = any key.
func verifyReport(env environment, path, publicKey string) error {
	v, err := reports.Verify(path, publicKey)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if len(v.Faults) > 0 {
		return fmt.Errorf("%s: %s", path, strings.Join(v.Faults, "; "))
	}
	fmt.Fprintf(env.Stdout, "%s: %d files are as they were signed on %s by dpwatch %s with key %s\n", v.Dir, len(v.Manifest.Files), v.Manifest.Created.Format("2006-01-02 15:04:05 MST"), v.Manifest.Version, v.Key)
	if !v.KeyGiven {
		fmt.Fprintln(env.Stderr, "dpwatch: warning: who signed it is not known: compare the key, or give --public-key")
	}
	return nil
}
