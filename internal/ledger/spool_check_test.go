package ledger_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/internal/ledger"
)

// TestCheckSpool: the check accepts what OpenSpool accepts, names what it does not, and makes nothing.
func TestCheckSpool(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	path := func(name string) string { return filepath.Join(top, name) }
	if err := os.WriteFile(path("file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(path("nowhere"), path("link")); err != nil {
		t.Fatal(err)
	}
	for name, mode := range map[string]os.FileMode{"ours": 0o700, "open": 0o755, "read only": 0o500} {
		if err := os.Mkdir(path(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path(name), mode); err != nil { //nolint:gosec // what the check refuses
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		dir     string
		exists  bool
		want    string // in the error; "" = none
		notRoot bool   // root may write everywhere
	}{
		{dir: "ours", exists: true},
		{dir: "new"},
		{dir: "new/and/deep"},
		{dir: "open", exists: true, want: ledger.ErrSpoolReadable.Error()},
		{dir: "file", exists: true, want: "is not a directory"},
		{dir: "file/below", want: "not a directory"},
		{dir: "link", want: "symbolic link to nothing"},
		{dir: "link/below", want: "symbolic link to nothing"},
		{dir: "read only", exists: true, want: "cannot write in", notRoot: true},
		{dir: "read only/below", want: "cannot write in", notRoot: true},
	} {
		if c.notRoot && os.Geteuid() == 0 {
			continue
		}
		exists, err := ledger.CheckSpool(path(c.dir))
		if exists != c.exists || (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %t, %v; want %t, %q", c.dir, exists, err, c.exists, c.want)
		}
	}
	if _, err := os.Stat(path("new")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the check made a directory: %v", err)
	}
	if entries, err := os.ReadDir(path("ours")); err != nil || len(entries) > 0 {
		t.Errorf("the check left %v, %v", entries, err)
	}
}
