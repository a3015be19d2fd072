package pgtemp

import (
	"strings"
	"sync"
)

// StartError is the reason why a cluster did not start.
type StartError struct {
	Step string // "account", "directory", "initdb", "start"
	Err  error
	Hint string // what to do about it; "" if unknown
	Log  string // the last lines of initdb's or the server's output; may be empty
}

// Error returns one line with the step, the error and the hint, followed by the last lines of the log.
func (e *StartError) Error() string {
	var b strings.Builder
	b.WriteString("temporary postgresql: " + e.Step + ": " + e.Err.Error())
	if e.Hint != "" {
		b.WriteString(": " + e.Hint)
	}
	for line := range strings.Lines(e.Log) {
		b.WriteString("\n  | " + strings.TrimRight(line, "\r\n"))
	}
	return b.String()
}

// Unwrap returns the underlying error.
func (e *StartError) Unwrap() error { return e.Err }

// hints maps PostgreSQL's messages to what an operator can do. The first match wins, because a full table of shared
// memory segments is also reported as "No space left on device".
var hints = []struct{ text, hint string }{
	{
		"could not create shared memory segment",
		"the system's limit on shared memory is used up: see which servers run (ipcs -m), or raise kern.sysv.shmmni (macOS) or kernel.shmmni (Linux)",
	},
	{"could not create semaphores", "the system's limit on semaphores is used up: raise kern.sysv.semmni (macOS) or kernel.sem (Linux)"},
	{"No space left on device", "the disk is full: free about 100 MB, or set TMPDIR to a directory on another disk"},
	{"Check free disk space", "the disk is full: free about 100 MB, or set TMPDIR to a directory on another disk"},
	{"Disk quota exceeded", "the disk quota is used up: free about 100 MB, or set TMPDIR to a directory that has them"},
	{"Read-only file system", "set TMPDIR to a directory that can be written to"},
	{"could not look up effective user ID", "the user has no entry in the passwd file: add one, or run as another user"},
	{"invalid locale", "the C locale is missing: install the system's locale files, or another build of PostgreSQL"},
	{"cannot be run as root", "run as an ordinary user"},
	{"error while loading shared libraries", "the PostgreSQL installation is incomplete: reinstall it"},
	{"could not access the server configuration", "set TMPDIR to a directory that other users can enter"},
	{"Permission denied", "the account that runs the server cannot enter a parent directory: set TMPDIR to one that it can enter, such as /tmp"},
}

func hintFor(log string) string {
	for _, h := range hints {
		if strings.Contains(log, h.text) {
			return h.hint
		}
	}
	return ""
}

// tail is a writer that keeps the last bytes written to it.
type tail struct {
	mu  sync.Mutex
	buf []byte // at most 2*maxTail bytes
}

const (
	maxTail      = 8 << 10
	maxTailLines = 12
)

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(p)
	if len(p) > maxTail {
		p = p[len(p)-maxTail:]
	}
	t.buf = append(t.buf, p...)
	if len(t.buf) > 2*maxTail {
		t.buf = append(t.buf[:0], t.buf[len(t.buf)-maxTail:]...)
	}
	return n, nil
}

// reset discards everything.
func (t *tail) reset() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = t.buf[:0]
}

// text returns everything kept.
func (t *tail) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.buf)
}

// lines returns the last maxTailLines lines.
func (t *tail) lines() string {
	all := strings.Split(strings.TrimSpace(t.text()), "\n")
	return strings.Join(all[max(0, len(all)-maxTailLines):], "\n")
}
