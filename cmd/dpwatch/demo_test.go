package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/dpwatch/dpwatch/internal/demo"
	"github.com/dpwatch/dpwatch/internal/longtest"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
)

// lockedBuffer is a buffer that a process writes while a test reads it.
type lockedBuffer struct {
	mu sync.Mutex // guards b
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// process is a running program whose output can be read while it runs.
type process struct {
	*exec.Cmd
	out, log lockedBuffer
	ended    chan struct{}
}

func startProgram(t *testing.T, args ...string) *process {
	t.Helper()
	return startProgramWith(t, nil, args...)
}

// startProgramWith is startProgram with additional environment variables.
func startProgramWith(t *testing.T, environ []string, args ...string) *process {
	t.Helper()
	p := &process{Cmd: program(context.Background(), args...), ended: make(chan struct{})}
	p.Env = append(p.Env, environ...)
	p.Stdout, p.Stderr = &p.out, &p.log
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { _ = p.Wait(); close(p.ended) }()
	t.Cleanup(func() {
		_ = p.Process.Kill()
		<-p.ended
	})
	return p
}

// patience is the time limit for an expected event; it only ends a test that hangs.
const patience = 20 * time.Minute

// until waits for a state while the program runs.
func (p *process) until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for began := time.Now(); time.Since(began) < patience; {
		if ok() {
			return
		}
		select {
		case <-p.ended:
			if !ok() {
				t.Fatalf("the program ended before %s\n%s\n%s", what, p.out.String(), p.log.String())
			}
			return
		case <-time.After(min(max(time.Since(began)/20, 10*time.Millisecond), 25*time.Millisecond)): // looks take time from what they wait for
		}
	}
	t.Fatalf("never happened: %s\n%s", what, p.log.String())
}

// auditorOf returns the process id of the auditor of the program, or of a child in which the program runs its command;
// 0 if there is none.
func auditorOf(t *testing.T, pid int) int {
	t.Helper()
	out, _ := exec.Command("pgrep", "-P", itoa(pid), "-f", "auditor").Output() // it fails if there is none
	if first, _, _ := strings.Cut(string(out), "\n"); first != "" {
		return atoi(first)
	}
	children, _ := exec.Command("pgrep", "-P", itoa(pid)).Output()
	for _, child := range strings.Fields(string(children)) {
		if found := auditorOf(t, atoi(child)); found != 0 {
			return found
		}
	}
	return 0
}

// The demo finds what was planted although its auditor is killed in the middle. The client is not affected, and no
// value of the data leaves the process.
func TestDemo(t *testing.T) {
	longtest.Scheduled(t) // a minute; CI runs make demo, too
	t.Parallel()
	bindir := pgtest.Start(t).BinDir()
	p := startProgram(t, "demo", "--all", "--max-trials", "1200", "--patience", "19m", "-o", "json", "--keep", "--pg-bindir", bindir)
	begun := regexp.MustCompile(`audits decided, [1-9][0-9]* pairs of trials`)
	p.until(t, "the first trials", func() bool { return begun.MatchString(p.log.String()) })
	first := auditorOf(t, p.Process.Pid)
	if first == 0 {
		t.Fatal("the demo has no auditor process")
	}
	if err := syscall.Kill(first, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	p.until(t, "the end of the audits", func() bool { return strings.Contains(p.log.String(), "still running") })
	noValues(t, p)
	if err := p.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	p.until(t, "the end", func() bool {
		select {
		case <-p.ended:
			return true
		default:
			return false
		}
	})
	if code := p.ProcessState.ExitCode(); code != exitDone {
		t.Errorf("exit code %d, want 0", code)
	}
	var got demo.Result
	if err := json.Unmarshal([]byte(p.out.String()), &got); err != nil {
		t.Fatalf("%v\n%s", err, p.out.String())
	}
	if !got.OK || got.Failures != 0 || got.Statements == 0 || got.Auditors < 2 {
		t.Errorf("ok %t, %d statements, %d failures, %d auditors; want ok, some, none, at least two", got.OK, got.Statements, got.Failures, got.Auditors)
	}
	broken, honest := 0, 0
	for _, row := range got.Rows {
		if !row.AsWanted {
			t.Errorf("%s: planted %s, found %s %s", row.Name, row.Planted, row.Found, row.Trouble)
		}
		switch row.Found {
		case "violation":
			broken++
		case "no_evidence":
			honest++
		}
	}
	if broken < 5 || honest < 4 {
		t.Errorf("%d violations and %d honest queries; want at least 5 and 4", broken, honest)
	}
	alerts := 0
	for line := range strings.Lines(p.log.String()) {
		if strings.Contains(line, `"privacy violation"`) {
			alerts++
			var v map[string]any
			if err := json.Unmarshal([]byte(line), &v); err != nil {
				t.Errorf("an alert that is not one JSON line: %s", line)
			}
		}
	}
	if alerts < broken {
		t.Errorf("%d alerts for %d violations", alerts, broken)
	}
	for _, literal := range []string{"'top'", "> 45000"} { // in the queries; no number in the log resembles them
		if strings.Contains(p.log.String(), literal) {
			t.Errorf("the literal %s of the queries is in the log", literal)
		}
	}
}
