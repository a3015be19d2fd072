package pgtemp_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/dpwatch/dpwatch/internal/eventually"
	"github.com/dpwatch/dpwatch/internal/longtest"
)

// child is a cluster in another process.
type child struct {
	cmd      *exec.Cmd
	dir      string
	pid, uid int
}

// startParent runs this test binary in the parent role.
func startParent(t *testing.T, role string, prepare func(*exec.Cmd)) child {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), parentRole+"="+role)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	prepare(cmd)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	c := child{cmd: cmd}
	if _, scanErr := fmt.Sscan(line, &c.dir, &c.pid, &c.uid); scanErr != nil {
		rest, _ := io.ReadAll(out)
		t.Fatalf("parent said %q%s (%v, %v)", line, rest, err, scanErr)
	}
	return c
}

// watchdogs returns the process ids of a directory's watchdogs (Linux: /proc).
func watchdogs(dir string) []int {
	var pids []int
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err == nil && strings.Contains(string(text), "dpwatch-pg-watchdog\x00"+dir) {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			if err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

func TestKilledParentLeavesNothing(t *testing.T) {
	t.Parallel()
	c := startParent(t, "wait", func(*exec.Cmd) {})
	if !exists(c.dir) || !running(c.pid) {
		t.Fatal("the cluster does not run")
	}
	if err := c.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "the server ends", func() bool { return !running(c.pid) })
	eventually.True(t, "the directory goes", func() bool { return !exists(c.dir) })
	eventually.True(t, "the watchdog ends", func() bool { return len(watchdogs(c.dir)) == 0 })
}

func TestSignalToTheGroupReachesOnlyTheParent(t *testing.T) {
	t.Parallel()
	c := startParent(t, "wait", func(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} })
	// Like a terminal at Ctrl-C: every process of the group gets the signal. This parent exits because of it.
	if err := syscall.Kill(-c.cmd.Process.Pid, syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "the directory goes", func() bool { return !exists(c.dir) })
	eventually.True(t, "the server ends", func() bool { return !running(c.pid) })
}

func TestSweep(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	if _, err := os.Stat("/proc/self/cmdline"); err != nil {
		t.Skip("needs /proc to find the watchdog")
	}
	tmp := shortTempDir(t)
	c := startParent(t, "wait", func(cmd *exec.Cmd) { cmd.Env = append(cmd.Env, "TMPDIR="+tmp) })
	dogs := watchdogs(c.dir)
	if len(dogs) != 1 {
		t.Fatalf("watchdogs: %v", dogs)
	}
	if err := syscall.Kill(dogs[0], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = c.cmd.Wait()
	if !running(c.pid) {
		t.Fatal("without parent and watchdog the server should still run")
	}

	foreign := filepath.Join(tmp, "dpwatch-pg-fresh") // no lock yet: another process is creating it
	if err := os.Mkdir(foreign, 0o700); err != nil {
		t.Fatal(err)
	}
	next := startParent(t, "wait", func(cmd *exec.Cmd) { cmd.Env = append(cmd.Env, "TMPDIR="+tmp) })
	if !exists(foreign) {
		t.Error("a directory that is just being made was removed")
	}
	// A server that takes long to stop is signalled by one sweep and removed by a later one.
	eventually.True(t, "the stale server ends and its directory goes", func() bool {
		if !exists(c.dir) && !running(c.pid) {
			return true
		}
		_ = startParent(t, "stop", func(cmd *exec.Cmd) { cmd.Env = append(cmd.Env, "TMPDIR="+tmp) }).cmd.Wait()
		return false
	})

	last := startParent(t, "stop", func(cmd *exec.Cmd) { cmd.Env = append(cmd.Env, "TMPDIR="+tmp) })
	if err := last.cmd.Wait(); err != nil {
		t.Error(err)
	}
	if !exists(next.dir) || !running(next.pid) {
		t.Error("a cluster in use was swept")
	}
}

func TestOrdinaryUser(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("already an ordinary user: the other tests show it")
	}
	u, err := user.Lookup("nobody")
	if err != nil {
		t.Skip("no account nobody")
	}
	uid, _ := strconv.ParseUint(u.Uid, 10, 32)
	gid, _ := strconv.ParseUint(u.Gid, 10, 32)
	c := startParent(t, "stop", func(cmd *exec.Cmd) {
		cmd.Path = copyOfSelf(t)
		cmd.Dir = "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
	})
	if c.uid != int(uid) {
		t.Errorf("ran as %d, want %d", c.uid, uid)
	}
	if err := c.cmd.Wait(); err != nil {
		t.Error(err)
	}
	if exists(c.dir) || running(c.pid) {
		t.Error("something is left")
	}
}

// copyOfSelf copies the test binary to a directory where an unprivileged user can run it.
func copyOfSelf(t *testing.T) string {
	t.Helper()
	self, err := os.Open(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	defer self.Close()
	path := filepath.Join(shortTempDir(t), "test")
	program(t, path, self)
	return path
}

// program makes an executable file. Another process writes it: a child started meanwhile by another test would inherit
// a file that is open for writing here, and such a file cannot be executed ("text file busy").
func program(t *testing.T, path string, content io.Reader) {
	t.Helper()
	cmd := exec.Command("sh", "-c", `cat >"$0" && chmod 755 "$0"`, path)
	cmd.Stdin = content
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("write %s: %v: %s", path, err, out)
	}
}

// shortTempDir is a directory under /tmp that all users can enter: t.TempDir's paths are too long for sockets.
func shortTempDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "dpw")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}
