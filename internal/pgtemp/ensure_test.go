package pgtemp_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/internal/pgtemp"
)

// ensure runs ensure.sh, which must not install anything in a test.
func ensure(t *testing.T, env ...string) (stdout, stderr string, err error) {
	t.Helper()
	cmd := exec.Command("/bin/sh", "ensure.sh")
	cmd.Env = append(append(os.Environ(), "DPWATCH_PG_INSTALL=no"), env...)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err = cmd.Run()
	return out.String(), errOut.String(), err
}

func TestEnsureFindsWhatFindBinDirFinds(t *testing.T) {
	t.Parallel()
	given := server(t, filepath.Join(t.TempDir(), "given"))
	for name, env := range map[string][]string{
		"as_it_is":     nil,
		"usual_places": {"DPWATCH_PG_BINDIR=", "PATH=/usr/bin:/bin"},
		"variable":     {"DPWATCH_PG_BINDIR=" + given},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			getenv := func(v string) string {
				for _, e := range env {
					if value, ok := strings.CutPrefix(e, v+"="); ok {
						return value
					}
				}
				return os.Getenv(v)
			}
			want, err := pgtemp.FindBinDir(t.Context(), pgtemp.Options{Getenv: getenv})
			if err != nil {
				t.Fatal(err)
			}
			stdout, stderr, err := ensure(t, env...)
			if err != nil || stdout != want+"\n" {
				t.Errorf("got %q (%v), want %q; said %s", stdout, err, want, stderr)
			}
		})
	}
}

// TestEnsureReportsAnOldRelease: a server of a package of which apt offers another release is used, and that is said.
func TestEnsureReportsAnOldRelease(t *testing.T) {
	t.Parallel()
	bin, given := t.TempDir(), server(t, filepath.Join(t.TempDir(), "given"))
	for name, script := range map[string]string{
		"dpkg-query": `echo "postgresql-15: $2"`,
		"apt-cache":  `printf '%s:\n  Installed: 15.18-0\n  Candidate: %s\n  Version table:\n' "$2" "$CANDIDATE"`,
	} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for candidate, want := range map[string]string{
		"15.20-0": "postgresql-15 15.18-0 is not the newest release, 15.20-0: apt-get install --only-upgrade postgresql-15\n",
		"15.18-0": "",
	} {
		stdout, stderr, err := ensure(t, "DPWATCH_PG_BINDIR="+given, "PATH="+bin+":/usr/bin:/bin", "CANDIDATE="+candidate)
		if err != nil || stdout != given+"\n" || stderr != want {
			t.Errorf("got %q, %q (%v), want %q", stdout, stderr, err, want)
		}
	}
}

func TestEnsureRefusesAWrongDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	stdout, stderr, err := ensure(t, "DPWATCH_PG_BINDIR="+dir)
	if err == nil || stdout != "" {
		t.Errorf("got %q, want a fault", stdout)
	}
	if !strings.Contains(stderr, "DPWATCH_PG_BINDIR, "+dir+", does not hold") {
		t.Errorf("said %q", stderr)
	}
}
