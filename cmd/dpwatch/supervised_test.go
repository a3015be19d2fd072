package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/dpwatch/dpwatch/internal/eventually"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
	"github.com/dpwatch/dpwatch/internal/supervise"
)

// panics makes the test binary panic as the supervised child, in a goroutine of its own. It stands for any fault of
// dpwatch.
const panics = "DPWATCH_TEST_PANIC"

// plantPanic is called before the program begins.
func plantPanic() {
	if os.Getenv(panics) != "" && len(os.Args) > 1 && os.Args[1] == supervise.VerdictCommand {
		go func() { panic("the row (4711, Smith)") }()
		select {}
	}
}

// slowAudit is an audit in a process of its own, in whose child a trial waits for an hour.
type slowAudit struct {
	cmd            *exec.Cmd
	stdout, stderr bytes.Buffer
	child          int // process id
}

func startSlowAudit(t *testing.T, args ...string) *slowAudit {
	t.Helper()
	dsn := copies(t)
	a := &slowAudit{}
	a.cmd = program(context.Background(), append([]string{
		"audit", "--dsn", dsn, "--d0", "d0", "--d1", "d1", "--epsilon", "1", "--statement-timeout", "2h", "-o", "json",
		"--sql", "SELECT slowly(count(*)) FROM people",
	}, args...)...)
	a.cmd.Stdout, a.cmd.Stderr = &a.stdout, &a.stderr
	if err := a.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.cmd.Process.Kill(); _ = a.cmd.Wait() })
	awaitSQL(t, pgtest.Connect(t, dsn), "a trial runs", "EXISTS (SELECT FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND datname = current_database())")
	a.child = onlyChild(t, a.cmd.Process.Pid)
	return a
}

// onlyChild returns the process that a process has started, from any of its threads.
func onlyChild(t *testing.T, pid int) (child int) {
	t.Helper()
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		t.Skip("SKIPPED: no /proc")
	}
	var all []string
	for _, task := range tasks {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", pid, task.Name()))
		all = append(all, strings.Fields(string(text))...)
	}
	if len(all) != 1 {
		t.Fatalf("children %v, want one", all)
	}
	child, _ = strconv.Atoi(all[0])
	return child
}

func (a *slowAudit) end() result {
	_ = a.cmd.Wait()
	return result{a.cmd.ProcessState.ExitCode(), a.stdout.String(), a.stderr.String()}
}

// TestDeathIsNoVerdict: the child of an audit that a signal ends, and an audit that is asked for a trace, have exit
// code 1 and no report.
func TestDeathIsNoVerdict(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		signal syscall.Signal
		parent bool
		want   string
	}{
		{syscall.SIGKILL, false, "no verdict: the process that ran this command ended before it had one: it was killed by SIGKILL"},
		{syscall.SIGSEGV, false, "no verdict: the process that ran this command ended before it had one: a signal ended it"},
		{syscall.SIGABRT, false, "no verdict"},
		{syscall.SIGQUIT, false, "no verdict"},
		{syscall.SIGQUIT, true, "no verdict"},
		{syscall.SIGABRT, true, "no verdict"},
	} {
		t.Run(fmt.Sprintf("%v parent=%v", tc.signal, tc.parent), func(t *testing.T) {
			t.Parallel()
			a := startSlowAudit(t)
			to := a.child
			if tc.parent {
				to = a.cmd.Process.Pid
			}
			if err := syscall.Kill(to, tc.signal); err != nil {
				t.Fatal(err)
			}
			r := a.end()
			r.want(t, exitFailure, tc.want)
			if r.stdout != "" {
				t.Errorf("standard output: %s", r.stdout)
			}
		})
	}
}

// TestPanicIsNoVerdict: a panic in the child is exit code 1 and names its place. Its message may hold values, and is
// shown only where values are.
func TestPanicIsNoVerdict(t *testing.T) {
	t.Parallel()
	lines := file(t, "lines", "1\n2\n")
	for args, shown := range map[string]bool{
		"analyze --d0 " + lines + " --d1 " + lines + " --epsilon 1 -o json":                true,
		"analyze --d0 " + lines + " --d1 " + lines + " --epsilon 1 -o json --values=false": false,
		"audit --dsn x --d0 d0 --d1 d1 --epsilon 1 --sql x":                                true,
		"audits reproduce 3f9c --config x":                                                 false,
		"calibrate":                                                                        true,
		"demo":                                                                             true,
		"neighbours verify --config x":                                                     false,
	} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			cmd := program(t.Context(), strings.Fields(args)...)
			cmd.Env = append(cmd.Env, panics+"=1")
			var stdout, stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			_ = cmd.Run()
			r := result{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
			r.want(t, exitFailure, "no verdict", "a fault of dpwatch ended it with exit status 2 (at cmd/dpwatch/supervised_test.go:", "please report it")
			if r.stdout != "" || strings.Contains(r.stderr, "Smith") != shown {
				t.Errorf("standard output %q, standard error %s", r.stdout, r.stderr)
			}
		})
	}
}

// TestSignalsReachTheChild: a SIGINT or SIGTERM ends the audit with exit code 1, also if a terminal sends it to both
// processes, and the child ends, also if its parent is killed.
func TestSignalsReachTheChild(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name    string
		signals []syscall.Signal
		group   bool // also to the child, as a terminal does
		ends    syscall.Signal
	}{
		{"SIGINT", []syscall.Signal{syscall.SIGINT}, false, 0},
		{"SIGTERM", []syscall.Signal{syscall.SIGTERM}, false, 0},
		{"Ctrl-C", []syscall.Signal{syscall.SIGINT}, true, 0},
		{"SIGKILL", []syscall.Signal{syscall.SIGKILL}, false, syscall.SIGKILL},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			a := startSlowAudit(t)
			for _, s := range tc.signals {
				if tc.group {
					_ = syscall.Kill(a.child, s)
				}
				_ = a.cmd.Process.Signal(s)
			}
			r := a.end()
			if status, _ := a.cmd.ProcessState.Sys().(syscall.WaitStatus); tc.ends != 0 && status.Signal() != tc.ends {
				t.Errorf("ended by %v", a.cmd.ProcessState)
			}
			if tc.ends == 0 {
				r.want(t, exitFailure, "context canceled")
				if strings.Contains(r.stderr, "no verdict") {
					t.Errorf("standard error: %s", r.stderr)
				}
			}
			eventually.True(t, "the child is gone", func() bool {
				stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", a.child))
				return err != nil || strings.Contains(string(stat), ") Z ") // nobody may reap it
			})
		})
	}
}

// TestLargestNumbers: queries and files with the largest and smallest numbers get a verdict.
func TestLargestNumbers(t *testing.T) {
	t.Parallel()
	dsn := copies(t)
	r := rand.New(rand.NewPCG(1, 1))
	numbers := func() string {
		var b strings.Builder
		for range 400 {
			x := max(0, (r.Float64()-.5)*3.4e307*10)
			if r.IntN(50) == 0 {
				x = []float64{5e-324, -1.7976931348623157e308, 1.7976931348623157e308, 1e-310}[r.IntN(4)]
			}
			fmt.Fprintln(&b, x)
		}
		return b.String() + "NaN\nInfinity\n-Infinity\n1e999\n\n"
	}
	for name, args := range map[string][]string{
		"audit": {
			"audit", "--dsn", dsn, "--d0", "d0", "--d1", "d1", "--epsilon", "1", "--max-trials", "400", "--confidence", "0.999999", "-o", "json",
			"--sql", "SELECT greatest(1e300, (random() - 0.5) * 3.4e307 * 10) + count(*) AS n FROM people",
		},
		"analyze": {
			"analyze", "--d0", file(t, "d0", numbers()), "--d1", file(t, "d1", numbers()), "--epsilon", "1", "--confidence", "0.999999", "-o", "json",
			"--plot", t.TempDir(),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := program(t.Context(), args...)
			var stdout, stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			_ = cmd.Run()
			var report struct{ Verdict string }
			if err := json.Unmarshal(stdout.Bytes(), &report); err != nil {
				t.Fatalf("%v\n%s%s", err, &stdout, &stderr)
			}
			if code := cmd.ProcessState.ExitCode(); code != exitDone || report.Verdict != "no_evidence" {
				t.Errorf("exit code %d with the verdict %q\n%s", code, report.Verdict, &stderr)
			}
		})
	}
}
