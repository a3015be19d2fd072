package pgtemp

import (
	_ "embed"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
)

//go:embed watchdog.sh
var watchdogScript string

// watchdog is the process that cleans up if this one dies; watchdog.sh is its program. It runs as the caller, in its
// own session, and outlives this process until the server has stopped.
type watchdog struct {
	cmd *exec.Cmd

	mu   sync.Mutex
	pipe io.WriteCloser // nil once released
}

func startWatchdog(dir string) (*watchdog, error) {
	cmd := exec.Command("/bin/sh", "-c", watchdogScript, "dpwatch-pg-watchdog", dir)
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=" + os.Getenv("PATH") + ":/usr/bin:/bin", "LC_ALL=C"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	pipe, err := cmd.StdinPipe() // closed on exec: no other child inherits it
	if err != nil {
		return nil, fmt.Errorf("watchdog: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("watchdog: %w", err)
	}
	return &watchdog{cmd: cmd, pipe: pipe}, nil
}

// guard names the child that must not outlive this process.
func (w *watchdog) guard(pid int) { w.send(fmt.Sprintf("pid %d\n", pid)) }

// gone reports that the child has ended, so that its pid, which the system may reuse, is never signalled.
func (w *watchdog) gone() { w.send("gone\n") }

// send ignores write errors: without its watchdog the cluster is unguarded, but works.
func (w *watchdog) send(line string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.pipe != nil {
		_, _ = io.WriteString(w.pipe, line)
	}
}

// release ends the watchdog after the caller has cleaned up. It is idempotent.
func (w *watchdog) release() {
	w.send("done\n")
	w.mu.Lock()
	pipe := w.pipe
	w.pipe = nil
	w.mu.Unlock()
	if pipe != nil {
		_ = pipe.Close()
		_ = w.cmd.Wait()
	}
}
