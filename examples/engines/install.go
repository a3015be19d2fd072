package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// python is the interpreter that PL/Python of the server is linked with: "3.11", in /usr/lib/postgresql/15/lib/plpython3.so.
var linked = regexp.MustCompile(`libpython(3\.[0-9]+)`)

// plpython returns the version of Python that the server's PL/Python runs, and installs PL/Python if it is missing.
func plpython(ctx context.Context, binDir string) (string, error) {
	if server, err := filepath.EvalSymlinks(filepath.Join(binDir, "postgres")); err == nil {
		binDir = filepath.Dir(server)
	}
	library, err := output(ctx, filepath.Join(binDir, "pg_config"), "--pkglibdir")
	if err != nil {
		library = filepath.Join(filepath.Dir(binDir), "lib")
	}
	library = filepath.Join(strings.TrimSpace(library), "plpython3.so")
	if _, err := os.Stat(library); err != nil {
		if err := installPLPython(ctx, binDir); err != nil {
			return "", err
		}
	}
	binary, err := os.ReadFile(library) //nolint:gosec // the server's own
	if err != nil {
		return "", fmt.Errorf("PL/Python is installed, but the server of %s has none: %w", binDir, err)
	}
	found := linked.FindSubmatch(binary)
	if found == nil {
		return "", fmt.Errorf("%s names no version of Python", library)
	}
	return string(found[1]), nil
}

// installPLPython installs the release of PL/Python that belongs to the server: the server itself stays as it is.
func installPLPython(ctx context.Context, binDir string) error {
	version, err := output(ctx, filepath.Join(binDir, "postgres"), "--version")
	if err != nil {
		return err
	}
	major := regexp.MustCompile(`\) (\d+)`).FindStringSubmatch(version)
	if major == nil {
		return fmt.Errorf("%s/postgres --version: %q has no version", binDir, version)
	}
	hint := fmt.Errorf("PL/Python of PostgreSQL %s is missing; install it: Debian, Ubuntu: apt-get install postgresql-plpython3-%[1]s; "+
		"Fedora: dnf install postgresql-plpython3; macOS: brew has no PL/Python, use a container", major[1])
	if _, err := exec.LookPath("apt-get"); err != nil {
		return hint
	}
	name := "postgresql-plpython3-" + major[1]
	if release, err := output(ctx, "dpkg-query", "-W", "-f", "${Version}", "postgresql-"+major[1]); err == nil {
		name += "=" + release
	}
	if err := aptInstall(ctx, name); err != nil {
		return fmt.Errorf("%w\n%w", hint, err)
	}
	return nil
}

// aptInstall installs a Debian package as root, or with sudo if that asks for no password.
func aptInstall(ctx context.Context, name string) error {
	var sudo []string
	if os.Getuid() != 0 {
		sudo = []string{"sudo", "-n"}
	}
	install := append(sudo, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-q", "-y", "install", "--no-install-recommends", "--no-upgrade", name)
	if _, err := output(ctx, install[0], install[1:]...); err == nil {
		return nil
	}
	update := append(sudo, "apt-get", "-q", "-y", "update")
	if _, err := output(ctx, update[0], update[1:]...); err != nil {
		return err
	}
	_, err := output(ctx, install[0], install[1:]...)
	return err
}

// anyPython returns the version of the system's Python, for engines that PL/Python does not run.
func anyPython(ctx context.Context) (string, error) {
	version, err := output(ctx, "python3", "-c", "import sys; print('%d.%d' % sys.version_info[:2])")
	return strings.TrimSpace(version), err
}

// packages returns the directory with the Python packages of an engine's version: of a virtual environment in root,
// made by this function if it is missing or made from other requirements.
func packages(ctx context.Context, root, python string, e engine, version string) (string, error) {
	requirements := filepath.Join(e.dir, "requirements-"+version+".txt")
	text, err := os.ReadFile(requirements) //nolint:gosec // of this folder
	if err != nil {
		return "", err
	}
	venv := filepath.Join(root, e.name+"-"+version)
	site := filepath.Join(venv, "lib", "python"+python, "site-packages")
	stamp, sum := filepath.Join(venv, "requirements.sha256"), fmt.Sprintf("%s %x", python, sha256.Sum256(text))
	if former, err := os.ReadFile(stamp); err == nil && string(former) == sum { //nolint:gosec // made below
		return site, nil
	}
	interpreter, err := interpreter(ctx, python)
	if err != nil {
		return "", err
	}
	if err := os.RemoveAll(venv); err != nil {
		return "", err
	}
	if _, err := output(ctx, interpreter, "-m", "venv", venv); err != nil {
		return "", err
	}
	pip := []string{"-m", "pip", "install", "-q", "--disable-pip-version-check", "--only-binary=:all:", "--no-deps", "-r", requirements}
	if _, err := output(ctx, filepath.Join(venv, "bin", "python"), pip...); err != nil {
		return "", fmt.Errorf("%s %s cannot be installed: %w", e.name, version, err)
	}
	return site, os.WriteFile(stamp, []byte(sum), 0o600)
}

// interpreter returns a Python of a version that can make virtual environments.
func interpreter(ctx context.Context, version string) (string, error) {
	for attempt := range 2 {
		for _, name := range []string{"/usr/bin/python" + version, "python" + version, "python3"} {
			script := "import sys, venv, ensurepip; sys.exit(sys.version_info[:2] != (" + strings.ReplaceAll(version, ".", ", ") + "))"
			if _, err := output(ctx, name, "-c", script); err == nil {
				return name, nil
			}
		}
		if _, err := exec.LookPath("apt-get"); err != nil || attempt > 0 || aptInstall(ctx, "python3-venv") != nil {
			break
		}
	}
	return "", fmt.Errorf("python%s with venv and ensurepip, which the engines need, is missing; install it (Debian: apt-get install python3-venv)", version)
}

// output runs a program and returns its standard output; an error contains what it wrote to standard error.
func output(ctx context.Context, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		err = fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return stdout.String(), err
}

// readable returns the directory for virtual environments: bin/engines, or one in the system's temporary directory if
// the server, which runs as another user if this program runs as root, could not read bin/engines.
func readable() (string, error) {
	dir, err := filepath.Abs(filepath.Join("bin", "engines"))
	if err != nil {
		return "", err
	}
	if os.Getuid() == 0 {
		for parent := filepath.Dir(filepath.Dir(dir)); parent != "/"; parent = filepath.Dir(parent) {
			if info, err := os.Stat(parent); err != nil || info.Mode()&0o001 == 0 {
				dir = filepath.Join(os.TempDir(), "dpwatch-engines")
				break
			}
		}
	}
	return dir, os.MkdirAll(dir, 0o755) //nolint:gosec // the server reads it
}
