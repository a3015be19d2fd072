package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// TestManPages requires a page for each command that help lists, with all its flags, and that groff reads them without
// a warning.
func TestManPages(t *testing.T) {
	dir := t.TempDir()
	root := rootCommand(environment{})
	if err := writeManPages(root, dir); err != nil {
		t.Fatal(err)
	}
	var names []string
	var visit func(*cobra.Command)
	visit = func(cmd *cobra.Command) {
		name := filepath.Join(dir, strings.ReplaceAll(cmd.CommandPath(), " ", "-")+".1")
		names = append(names, name)
		page, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if want := strings.ReplaceAll("--"+f.Name, "-", `\-`); !f.Hidden && !bytes.Contains(page, []byte(want)) {
				t.Errorf("%s has no --%s", name, f.Name)
			}
		})
		for _, c := range cmd.Commands() {
			if c.IsAvailableCommand() && c.Name() != "completion" {
				visit(c)
			}
		}
	}
	visit(root)
	if written, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(written) != len(names) {
		t.Errorf("%d pages of %d commands, %v", len(written), len(names), err)
	}
	if _, err := exec.LookPath("groff"); err != nil {
		t.Skip("SKIPPED: no groff")
	}
	// -k: UTF-8; -ww: all warnings; break is for lines that are longer than the page, which keep their length.
	out, err := exec.Command("groff", append([]string{"-k", "-man", "-Tutf8", "-ww", "-Wbreak", "-z"}, names...)...).CombinedOutput()
	if err != nil || len(out) > 0 {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestRoff(t *testing.T) {
	if got, want := roff(".a\\b --c\n'd\n e.f"), "\\&.a\\eb \\-\\-c\n\\&'d\n e.f"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
