package ledger_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/internal/ledger"
)

func openSpool(t *testing.T, dir string, limit int64) *ledger.Spool {
	t.Helper()
	s, err := ledger.OpenSpool(dir, limit, false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// TestSpoolFiles: files come back in order, damaged ones are renamed, unfinished ones are removed, and one process at a
// time has the directory.
func TestSpoolFiles(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "spool")
	s := openSpool(t, dir, 1<<20)
	for _, text := range []string{"first", "second", "third"} {
		if err := s.Put(ledger.SpooledQueries, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := ledger.OpenSpool(dir, 1<<20, false); !errors.Is(err, ledger.ErrSpoolInUse) {
		t.Errorf("a second process: %v, want ErrSpoolInUse", err)
	}
	_ = s.Close()
	damaged, _ := filepath.Glob(filepath.Join(dir, "*.queries"))
	if err := os.Truncate(damaged[1], 12); err != nil {
		t.Fatal(err)
	}
	unfinished := filepath.Join(dir, "1.queries.new")
	if err := os.WriteFile(unfinished, []byte("SELECT 'a literal'"), 0o600); err != nil {
		t.Fatal(err)
	}
	s = openSpool(t, dir, 1<<20)
	if _, err := os.Stat(unfinished); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the unfinished file is still there: %v", err)
	}
	var got []string
	for {
		name, content, err := s.First(ledger.SpooledQueries)
		switch {
		case err != nil:
			got = append(got, "damaged")
			continue
		case name == "":
			if text := strings.Join(got, " "); text != "first damaged third" {
				t.Errorf("read %q", text)
			}
			if _, err := os.Stat(damaged[1] + ".damaged"); err != nil {
				t.Errorf("the damaged file is gone: %v", err)
			}
			return
		}
		got = append(got, string(content))
		if err := s.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
}

// TestSpoolReadable: a directory that others can read is refused.
func TestSpoolReadable(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o750); err != nil { //nolint:gosec // that is the test
		t.Fatal(err)
	}
	if _, err := ledger.OpenSpool(dir, 1<<20, false); !errors.Is(err, ledger.ErrSpoolReadable) {
		t.Errorf("%v, want ErrSpoolReadable", err)
	}
}

// TestSpoolBound: captured queries leave space to batches.
func TestSpoolBound(t *testing.T) {
	t.Parallel()
	s := openSpool(t, t.TempDir()+"/spool", 4096)
	noise := make([]byte, 700) // incompressible enough
	for i := range noise {
		noise[i] = byte(i * i * 31 >> 3)
	}
	for i := 0; ; i++ {
		noise[0] = byte(i)
		if err := s.Put(ledger.SpooledQueries, bytes.Clone(noise)); errors.Is(err, ledger.ErrSpoolFull) {
			break
		} else if err != nil || i > 100 {
			t.Fatalf("file %d: %v", i, err)
		}
	}
	if err := s.PutBatch(ledger.Batch{Skips: []ledger.Skip{{Reason: "backlog", Statements: 1}}}); err != nil {
		t.Errorf("a batch: %v", err)
	}
	if _, size := s.Len(); size > 4096 {
		t.Errorf("%d bytes, want at most 4096", size)
	}
}

// TestAttempt: attempts of one part are counted over processes.
func TestAttempt(t *testing.T) {
	t.Parallel()
	dir := t.TempDir() + "/spool"
	for process, want := range []int{1, 2, 3} {
		s := openSpool(t, dir, 1<<20)
		if n := s.Attempt("a", 6); n != 1 {
			t.Errorf("process %d: %d attempts of an earlier part, want 1", process, n)
		}
		if n := s.Attempt("a", 7); n != want {
			t.Errorf("process %d: %d attempts, want %d", process, n, want)
		}
		_ = s.Close()
	}
	s := openSpool(t, dir, 1<<20)
	for i, name := range []string{"a", "b"} {
		if n := s.Attempt(name, 8); n != 1 {
			t.Errorf("%d: %d attempts of another part, want 1", i, n)
		}
	}
}
