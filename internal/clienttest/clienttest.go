// Package clienttest installs client programs and libraries of other languages, and applications, for tests, at the
// versions that the files in testdata pin, from their registries, and has programs for the clients (Script).
//
// An installation is kept in the user's cache (dpwatch/clients), one directory for each content of the pinned files.
// Tests install what is missing there only with DPWATCH_TEST_CLIENTS=1; then an installation that fails fails the test.
// Without the variable they are skipped.
package clienttest

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
)

//go:embed testdata
var pinned embed.FS

//go:embed scripts
var scripts embed.FS

// set is a group of clients that one package manager installs.
type set struct {
	name     string   // the directory of the pinned files in testdata
	version  []string // a command whose output an installation depends on, such as an interpreter's version
	commands [][]string
	remove   []string // what the commands leave and the clients do not need
}

var (
	python       = sync.OnceValues(pip("python").find)
	applications = map[string]func() (string, error){
		"wagtail":  sync.OnceValues(pip("wagtail").find),
		"oscar":    sync.OnceValues(pip("oscar").find),
		"directus": sync.OnceValues(node("directus").find), // a module is compiled
		"medusa":   sync.OnceValues(node("medusa", "--ignore-scripts").find),
	}
	npm = sync.OnceValues(set{
		name:     "npm",
		version:  []string{"node", "--version"},
		commands: [][]string{{"npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"}},
	}.find)
	maven = sync.OnceValues(set{
		name:    "maven",
		version: []string{"javac", "-version"},
		commands: [][]string{
			{"mvn", "-B", "-q", "-ntp", "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies", "-DoutputDirectory=jars"},
		},
	}.find)
	cargo = sync.OnceValues(set{
		name:     "cargo",
		version:  []string{"cargo", "--version"},
		commands: [][]string{{"cargo", "install", "--quiet", "--debug", "--path", ".", "--root", ".", "--target-dir", "target"}},
		remove:   []string{"target"},
	}.find)
)

// pip is a set that makes a virtual environment.
func pip(name string) set {
	return set{
		name:    name,
		version: []string{"python3", "-c", "import sys; print(sys.executable, sys.version)"},
		commands: [][]string{
			{"python3", "-m", "venv", "venv"},
			{"venv/bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input", "--requirement", "requirements.txt"},
		},
	}
}

// node is a set without a lock file, which would have a thousand packages.
func node(name string, flags ...string) set {
	return set{name: name, version: []string{"node", "--version"}, commands: [][]string{append([]string{"npm", "install", "--no-audit", "--no-fund"}, flags...)}}
}

// Application returns a command that lets the migrations of an application of testdata make their schema in the database
// that DATABASE_URL and PGHOST, PGPORT, PGDATABASE, PGUSER and PGPASSWORD say.
func Application(t testing.TB, name string) *exec.Cmd {
	cmd := exec.CommandContext(t.Context(), "bash", "-e", "migrate.sh")
	cmd.Dir = need(t, applications[name])
	return cmd
}

// Python returns the interpreter of a virtual environment with the packages of testdata/python.
func Python(t testing.TB) string { return filepath.Join(need(t, python), "venv", "bin", "python") }

// Node returns the directory of the modules of testdata/npm, for NODE_PATH.
func Node(t testing.TB) string { return filepath.Join(need(t, npm), "node_modules") }

// Java returns the class path of the jars of testdata/maven.
func Java(t testing.TB) string { return filepath.Join(need(t, maven), "jars", "*") }

// Rust returns the directory of the programs of testdata/cargo.
func Rust(t testing.TB) string { return filepath.Join(need(t, cargo), "bin") }

// Script returns a client program that uses the protocol in the ways of its library, and writes the same output every
// time. It connects to what PGHOST, PGPORT, PGUSER, PGPASSWORD and PGDATABASE say. Without postgres, what an engine that
// only answers queries does not support is left out: lines between the comments "PostgreSQL only: what" and "end".
func Script(t testing.TB, name string, postgres bool) string {
	t.Helper()
	text, err := scripts.ReadFile("scripts/" + name)
	if err != nil {
		t.Fatal(err)
	}
	if postgres {
		return string(text)
	}
	return postgresOnly.ReplaceAllString(string(text), "")
}

var postgresOnly = regexp.MustCompile(`(?ms)^ *(?:#|//|--) PostgreSQL only: .*?^ *(?:#|//|--) end\n`)

// errMissing is why clients are not there if nothing was installed.
var errMissing = errors.New("not installed")

func need(t testing.TB, find func() (string, error)) string {
	t.Helper()
	dir, err := find()
	if errors.Is(err, errMissing) {
		t.Skip("SKIPPED: " + err.Error())
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// find returns the directory of the installation, which it makes if it may.
func (s set) find() (string, error) {
	install := os.Getenv("DPWATCH_TEST_CLIENTS") == "1"
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("clients of %s: %w", s.name, err)
	}
	version, err := exec.Command(s.version[0], s.version[1:]...).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("clients of %s: %s: %w: install it\n%s", s.name, s.version[0], err, version)
		if !install {
			err = fmt.Errorf("%w: %w", errMissing, err)
		}
		return "", err
	}
	files, err := fs.Sub(pinned, "testdata/"+s.name)
	if err != nil {
		return "", err
	}
	hash, err := s.hash(files, version)
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "dpwatch", "clients", s.name+"-"+hash)
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	if !install {
		return "", fmt.Errorf("clients of %s: %w: DPWATCH_TEST_CLIENTS=1 installs them in %s", s.name, errMissing, dir)
	}
	if err := s.install(files, dir); err != nil {
		return "", err
	}
	return dir, nil
}

// hash identifies an installation by all that it depends on.
func (s set) hash(files fs.FS, version []byte) (string, error) {
	h := sha256.New()
	fmt.Fprintf(h, "%s %s %s %q", runtime.GOOS, runtime.GOARCH, version, s.commands)
	err := fs.WalkDir(files, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(files, path)
		fmt.Fprintf(h, "\n%s %d\n%s", path, len(text), text)
		return err
	})
	return hex.EncodeToString(h.Sum(nil))[:16], err
}

// install makes dir, unless another process does meanwhile. The directory appears when it is complete.
func (s set) install(files fs.FS, dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	lock, err := os.Create(dir + ".lock")
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return fmt.Errorf("%s: %w", lock.Name(), err)
	}
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	unfinished := dir + ".unfinished"
	if err := os.RemoveAll(unfinished); err != nil { // of a process that was killed
		return err
	}
	defer os.RemoveAll(unfinished)
	if err := os.CopyFS(unfinished, files); err != nil {
		return err
	}
	for _, command := range s.commands {
		if err := run(unfinished, command); err != nil {
			return fmt.Errorf("clients of %s could not be installed: %w", s.name, err)
		}
	}
	for _, name := range s.remove {
		if err := os.RemoveAll(filepath.Join(unfinished, name)); err != nil {
			return err
		}
	}
	return os.Rename(unfinished, dir)
}

// run runs one command of an installation in dir. Its error has the command's output.
func run(dir string, command []string) error {
	cmd := exec.Command(command[0], command[1:]...)
	if strings.Contains(command[0], "/") {
		cmd.Path = filepath.Join(dir, command[0])
	}
	cmd.Dir = dir
	var output strings.Builder
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(command, " "), err, output.String())
	}
	return nil
}
