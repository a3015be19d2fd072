package pgtemp_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dpwatch/dpwatch/internal/pgtemp"
)

// environment returns a Getenv for the given variables only.
func environment(vars map[string]string) func(string) string {
	return func(name string) string { return vars[name] }
}

// server makes a directory that looks like one with server binaries.
func server(t *testing.T, dir string) string {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"initdb", "postgres"} {
		program(t, filepath.Join(dir, name), strings.NewReader("#!/bin/sh\nexit 1\n"))
	}
	return dir
}

// TestTool: client programs are found beside the server's, also if those are symbolic links.
func TestTool(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	real := server(t, filepath.Join(root, "15/bin"))
	bench := filepath.Join(real, "pgbench")
	program(t, bench, strings.NewReader("#!/bin/sh\n"))
	linked := filepath.Join(root, "linked")
	if err := os.Mkdir(linked, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(real, "initdb"), filepath.Join(linked, "initdb")); err != nil {
		t.Fatal(err)
	}
	bench, err := filepath.EvalSymlinks(bench)
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{real, linked} {
		if got := pgtemp.Tool(dir, "pgbench"); got != bench {
			t.Errorf("Tool(%s) = %s, want %s", dir, got, bench)
		}
	}
	if got := pgtemp.Tool(real, "psql"); got != "psql" {
		t.Errorf("a tool that is not there: %s, want its name", got)
	}
}

func TestFindBinDir(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	old := server(t, filepath.Join(root, "lib/postgresql/9.6/bin"))
	server(t, filepath.Join(root, "lib/postgresql/15/bin"))
	newest := server(t, filepath.Join(root, "opt/postgresql@17/bin"))
	usual := []string{filepath.Join(root, "lib/postgresql/*/bin"), filepath.Join(root, "opt/postgresql@*/bin")}

	linked := filepath.Join(root, "linked")
	onlyLibpq := filepath.Join(root, "dev")
	config := filepath.Join(root, "config")
	for _, dir := range []string{linked, onlyLibpq, config} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(old, "initdb"), filepath.Join(linked, "initdb")); err != nil {
		t.Fatal(err)
	}
	for dir, says := range map[string]string{onlyLibpq: onlyLibpq, config: old} {
		script := "#!/bin/sh\n[ \"$1\" = --bindir ] && echo " + says + "\n"
		program(t, filepath.Join(dir, "pg_config"), strings.NewReader(script))
	}

	for _, c := range []struct {
		name string
		o    pgtemp.Options
		want string
	}{
		{"given", pgtemp.Options{BinDir: old, Getenv: environment(map[string]string{"DPWATCH_PG_BINDIR": newest})}, old},
		{"variable", pgtemp.Options{Getenv: environment(map[string]string{"DPWATCH_PG_BINDIR": old, "PATH": newest})}, old},
		{"path", pgtemp.Options{Getenv: environment(map[string]string{"PATH": "/nowhere:" + old})}, old},
		{"path_by_link", pgtemp.Options{Getenv: environment(map[string]string{"PATH": linked})}, old},
		{"relative_path_entries_do_not_count", pgtemp.Options{Getenv: environment(map[string]string{"PATH": ".:"})}, newest},
		{"pg_config", pgtemp.Options{Getenv: environment(map[string]string{"PATH": config})}, old},
		{"pg_config_of_a_client_library", pgtemp.Options{Getenv: environment(map[string]string{"PATH": onlyLibpq})}, newest},
		{"newest_of_the_usual_places", pgtemp.Options{Getenv: environment(nil)}, newest},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.o.Patterns = usual
			got, err := pgtemp.FindBinDir(t.Context(), c.o)
			if err != nil {
				t.Fatal(err)
			}
			if got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestMissingBinaries(t *testing.T) {
	t.Parallel()
	empty := t.TempDir()
	for _, c := range []struct {
		name  string
		o     pgtemp.Options
		first string
	}{
		{"nowhere", pgtemp.Options{Getenv: environment(nil), Patterns: []string{}}, "postgresql server binaries (initdb, postgres) not found"},
		{
			"given",
			pgtemp.Options{BinDir: empty},
			"postgresql server binaries: the directory given, " + empty + ", does not hold initdb and postgres",
		},
		{
			"variable",
			pgtemp.Options{Getenv: environment(map[string]string{"DPWATCH_PG_BINDIR": empty})},
			"postgresql server binaries: DPWATCH_PG_BINDIR, " + empty + ", does not hold initdb and postgres",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := pgtemp.Start(t.Context(), c.o)
			var missing *pgtemp.NotFoundError
			if !errors.As(err, &missing) {
				t.Fatalf("got %v, want a NotFoundError", err)
			}
			first, rest, _ := strings.Cut(err.Error(), "\n")
			if first != c.first {
				t.Errorf("says %q, want %q", first, c.first)
			}
			for _, want := range []string{"apt-get", "apk", "dnf", "brew", "DPWATCH_PG_BINDIR", "--pg-bindir"} {
				if !strings.Contains(rest, want) {
					t.Errorf("no %s in the hint:\n%s", want, rest)
				}
			}
		})
	}
}

func TestUnusableTemporaryDirectory(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	closed := shortTempDir(t)
	if err := os.Chmod(closed, 0o555); err != nil {
		t.Fatal(err)
	}
	for name, dir := range map[string]string{"missing": "/no/such/dir", "file": file, "closed": closed} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name == "closed" && os.Geteuid() == 0 {
				dir = "/proc" // root can write everywhere else
			}
			c, err := pgtemp.Start(t.Context(), pgtemp.Options{Getenv: func(v string) string {
				if v == "TMPDIR" {
					return dir
				}
				return os.Getenv(v)
			}})
			if err == nil {
				_ = c.Stop()
				t.Fatal("started")
			}
			if !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), "TMPDIR") || strings.Contains(err.Error(), "\n") {
				t.Errorf("one line with the directory and TMPDIR expected, got: %v", err)
			}
		})
	}
}

func TestLongOrClosedTemporaryDirectoryIsPassedOver(t *testing.T) {
	t.Parallel()
	long := filepath.Join(t.TempDir(), strings.Repeat("long", 25))
	if err := os.Mkdir(long, 0o755); err != nil {
		t.Fatal(err)
	}
	c := start(t, pgtemp.Options{Getenv: func(v string) string {
		if v == "TMPDIR" {
			return long
		}
		return os.Getenv(v)
	}})
	if got := filepath.Dir(c.Dir()); got != "/tmp" {
		t.Errorf("in %s, want /tmp", got)
	}
}

func TestCancelledStart(t *testing.T) {
	t.Parallel()
	tmp := shortTempDir(t)
	if err := os.Chmod(tmp, 0o777); err != nil {
		t.Fatal(err)
	}
	getenv := func(v string) string {
		if v == "TMPDIR" {
			return tmp
		}
		return os.Getenv(v)
	}
	// From before anything runs to well into initdb and the server's start.
	for _, after := range []time.Duration{0, 5, 50, 200, 400} {
		ctx, cancel := context.WithTimeout(t.Context(), after*time.Millisecond)
		c, err := pgtemp.Start(ctx, pgtemp.Options{Getenv: getenv})
		cancel()
		if err == nil {
			_ = c.Stop()
		} else if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("after %d ms: %v, want the context's error", after, err)
		}
		left, err := os.ReadDir(tmp)
		if err != nil || len(left) != 0 {
			t.Errorf("after %d ms: left %v, %v", after, left, err)
		}
	}
}

func TestBinariesThatTheAccountMayNotRun(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("an ordinary user finds only what it may run")
	}
	closed := shortTempDir(t)
	bin := server(t, filepath.Join(closed, "bin"))
	if err := os.Chmod(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := pgtemp.Start(t.Context(), pgtemp.Options{BinDir: bin})
	if err == nil || !strings.Contains(err.Error(), bin) || !strings.Contains(err.Error(), "cannot run it") {
		t.Errorf("got %v, want the directory and what to do", err)
	}
}

func TestBadSettings(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		settings map[string]string
		want     string
	}{
		{"name", map[string]string{"work mem": "1"}, `setting "work mem": not the name of a server setting`},
		{"two_lines", map[string]string{"work_mem": "1MB\nfsync=on"}, "setting work_mem: its value must be one line"},
		{"refused_by_the_server", map[string]string{"work_mem": "lots"}, `invalid value for parameter "work_mem": "lots"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := pgtemp.Start(t.Context(), pgtemp.Options{Settings: c.settings})
			if err == nil {
				_ = got.Stop()
				t.Fatal("started")
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q in it", err, c.want)
			}
		})
	}
}

// The texts are PostgreSQL 15's messages in the named cases. A stand-in initdb prints them, because a test cannot fill
// disks.
func TestHints(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, text, want string }{
		{
			"disk_full",
			`FATAL:  could not write to file "pg_wal/xlogtemp.20547": No space left on device` + "\nchild process exited with exit code 1",
			"the disk is full: free about 100 MB, or set TMPDIR",
		},
		{
			"disk_full_later",
			`FATAL:  could not extend file "base/1/2691": wrote only 4096 of 8192 bytes at block 20` + "\nHINT:  Check free disk space.",
			"the disk is full: free about 100 MB, or set TMPDIR",
		},
		{
			"shared_memory_is_not_the_disk",
			"FATAL:  could not create shared memory segment: No space left on device",
			"the system's limit on shared memory is used up",
		},
		{"no_passwd_entry", "initdb: error: could not look up effective user ID 12345: user does not exist", "no entry in the passwd file"},
		{"no_locale", `initdb: error: invalid locale settings; check LANG and LC_* environment variables` + "\ninvalid locale name", "the C locale is missing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			bin := server(t, filepath.Join(shortTempDir(t), "bin"))
			script := "#!/bin/sh\ncat <<'END'\n" + c.text + "\nEND\nexit 1\n"
			program(t, filepath.Join(bin, "initdb"), strings.NewReader(script))
			_, err := pgtemp.Start(t.Context(), pgtemp.Options{BinDir: bin})
			var failed *pgtemp.StartError
			if !errors.As(err, &failed) {
				t.Fatalf("got %v, want a StartError", err)
			}
			first, rest, _ := strings.Cut(err.Error(), "\n")
			if !strings.Contains(first, "initdb") || !strings.Contains(first, c.want) {
				t.Errorf("first line %q, want %q in it", first, c.want)
			}
			var lines []string
			for line := range strings.Lines(rest) {
				lines = append(lines, strings.TrimPrefix(strings.TrimSpace(line), "| "))
			}
			if diff := cmp.Diff(strings.Split(c.text, "\n"), lines); diff != "" {
				t.Errorf("log lines (-want +got):\n%s", diff)
			}
		})
	}
}
