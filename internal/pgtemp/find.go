package pgtemp

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// NotFoundError means that no usable PostgreSQL server binaries were found.
type NotFoundError struct {
	// Reason is what is wrong with a directory named by the caller or the environment; "" if none was named.
	Reason string
}

// Error returns one line with the error, followed by the commands that install PostgreSQL.
func (e *NotFoundError) Error() string {
	if e.Reason != "" {
		return "postgresql server binaries: " + e.Reason + "\n" + Hint
	}
	return "postgresql server binaries (initdb, postgres) not found\n" + Hint
}

// Hint says how to install the PostgreSQL server binaries.
const Hint = `install the PostgreSQL server (no service needs to run), one of:
  Debian, Ubuntu   apt-get install postgresql
  Alpine           apk add postgresql
  Fedora, RHEL     dnf install postgresql-server
  macOS            brew install postgresql@17
or, if it is installed, give the directory that contains initdb and postgres:
  DPWATCH_PG_BINDIR=/path/to/bin    or    --pg-bindir /path/to/bin`

// UsualPlaces returns the glob patterns of the usual directories of server binaries: Debian, PGDG rpm, SUSE, Alpine,
// Homebrew (arm, intel, Linux), Postgres.app, EDB, MacPorts, nix and a build from source.
func UsualPlaces() []string {
	return []string{
		"/usr/lib/postgresql/*/bin",
		"/usr/pgsql-*/bin",
		"/usr/lib/postgresql*/bin",
		"/usr/libexec/postgresql*",
		"/opt/homebrew/opt/postgresql*/bin",
		"/usr/local/opt/postgresql*/bin",
		"/home/linuxbrew/.linuxbrew/opt/postgresql*/bin",
		"/Applications/Postgres.app/Contents/Versions/*/bin",
		"/Library/PostgreSQL/*/bin",
		"/opt/local/lib/postgresql*/bin",
		"/nix/store/*-postgresql-*/bin",
		"/run/current-system/sw/bin",
		"/usr/local/pgsql/bin",
		"/usr/bin",
		"/usr/local/bin",
	}
}

// FindBinDir returns the directory that holds initdb and postgres. It checks o.BinDir, then $DPWATCH_PG_BINDIR (a
// directory named by either must be right: there is no silent fallback), then initdb on PATH, then the directory
// reported by pg_config on PATH, then o.Patterns with the newest major version first. The error is a *NotFoundError.
func FindBinDir(ctx context.Context, o Options) (string, error) {
	for _, named := range []struct{ source, dir string }{
		{"the directory given", o.BinDir},
		{"DPWATCH_PG_BINDIR", o.getenv("DPWATCH_PG_BINDIR")},
	} {
		if named.dir == "" {
			continue
		}
		dir, ok := serverDir(named.dir)
		if !ok {
			return "", &NotFoundError{Reason: fmt.Sprintf("%s, %s, does not hold initdb and postgres", named.source, named.dir)}
		}
		return dir, nil
	}
	for _, dir := range slices.Concat(onPath(o, "initdb"), fromPgConfig(ctx, o), fromPatterns(o)) {
		if found, ok := serverDir(dir); ok {
			return found, nil
		}
	}
	return "", &NotFoundError{}
}

// Tool returns the path of a client program, such as pgbench, that belongs to the server binaries in binDir, which can
// be symbolic links. Without one it returns the bare name, for PATH.
func Tool(binDir, name string) string {
	if real, err := filepath.EvalSymlinks(filepath.Join(binDir, "initdb")); err == nil {
		if path := filepath.Join(filepath.Dir(real), name); executable(path) {
			return path
		}
	}
	return name
}

// serverDir reports whether dir holds initdb and postgres, and returns their directory: dir itself, or the target
// directory of the initdb link if only that has both.
func serverDir(dir string) (string, bool) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", false
	}
	if executable(filepath.Join(abs, "initdb")) && executable(filepath.Join(abs, "postgres")) {
		return abs, true
	}
	target, err := filepath.EvalSymlinks(filepath.Join(abs, "initdb"))
	if err != nil {
		return "", false
	}
	abs = filepath.Dir(target)
	return abs, executable(target) && executable(filepath.Join(abs, "postgres"))
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// onPath returns the directories of PATH that contain the program.
func onPath(o Options, program string) []string {
	return slices.DeleteFunc(filepath.SplitList(o.getenv("PATH")), func(dir string) bool {
		return !filepath.IsAbs(dir) || !executable(filepath.Join(dir, program))
	})
}

func fromPgConfig(ctx context.Context, o Options) []string {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	var dirs []string
	for _, dir := range onPath(o, "pg_config") {
		out, err := exec.CommandContext(ctx, filepath.Join(dir, "pg_config"), "--bindir").Output()
		if found := strings.TrimSpace(string(out)); err == nil && found != "" {
			dirs = append(dirs, found)
		}
	}
	return dirs
}

func fromPatterns(o Options) []string {
	patterns := o.Patterns
	if patterns == nil {
		patterns = UsualPlaces()
		if home := o.getenv("HOME"); home != "" {
			patterns = append(patterns, filepath.Join(home, ".nix-profile/bin"))
		}
	}
	var dirs []string
	for _, pattern := range patterns {
		found, err := filepath.Glob(pattern)
		if err == nil {
			dirs = append(dirs, found...)
		}
	}
	slices.SortStableFunc(dirs, func(a, b string) int { return slices.Compare(version(b), version(a)) })
	return dirs
}

var versionInPath = regexp.MustCompile(`(?i)(?:postgresql|pgsql|versions)[-@/]?([0-9]+)(?:\.([0-9]+))?`)

// version returns the major and minor version in a path, {0, 0} if there is none.
func version(path string) []int {
	v := []int{0, 0}
	m := versionInPath.FindStringSubmatch(path)
	for i := range v {
		if m != nil {
			n, err := strconv.Atoi(cmp.Or(m[i+1], "0"))
			if err == nil {
				v[i] = n
			}
		}
	}
	return v
}
