//go:build linux

package chaos_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/dpwatch/dpwatch/internal/eventually"
)

// auditor returns the process id of the auditor, 0 if there is none at the moment. The kernel lists a child at the
// thread that started it, which may be any of the relay's.
func (s *sidecar) auditor() int {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", s.Cmd.Process.Pid)) // the pattern is well-formed
	for _, list := range lists {
		pids, _ := os.ReadFile(list) // a thread may have ended
		for _, pid := range strings.Fields(string(pids)) {
			command, _ := os.ReadFile("/proc/" + pid + "/cmdline") // empty if it has ended
			if slices.Contains(strings.Split(string(command), "\x00"), "auditor") {
				return number([]byte(pid))
			}
		}
	}
	return 0
}

// auditorEnds returns the reasons for which the relay's log says that auditors ended.
func (s *sidecar) auditorEnds() (reasons []string) {
	for line := range strings.Lines(s.Log.String()) {
		var entry struct {
			Message string `json:"msg"`
			Error   string
		}
		if json.Unmarshal([]byte(line), &entry) == nil && strings.HasPrefix(entry.Message, "auditor process ended") {
			reasons = append(reasons, entry.Error)
		}
	}
	return reasons
}

// provenAuditor waits until the relay's log says how an auditor ended. If not by a kill, or if another one ended, the
// test fails.
func (s *sidecar) provenAuditor(t *testing.T, pid int) {
	t.Helper()
	s.killed++
	process, reason := "process "+strconv.Itoa(pid)+": ", ""
	eventually.True(t, "the relay's log says that its "+process+"has ended", func() bool {
		for _, r := range s.auditorEnds() {
			if strings.HasPrefix(r, process) {
				reason = r
			}
		}
		return reason != "" || t.Failed()
	}, func() any { return s.auditorEnds() })
	if reason != process+"signal: killed" {
		t.Errorf("the kill did not hit: %q", reason)
	}
	t.Logf("the relay's log: %s", reason)
	eventually.True(t, "another auditor", func() bool { now := s.auditor(); return now != 0 && now != pid || t.Failed() })
	s.noOtherEnd(t)
}

// noOtherEnd fails the test if an auditor ended that the test has not killed.
func (s *sidecar) noOtherEnd(t *testing.T) {
	t.Helper()
	if ends := s.auditorEnds(); len(ends) != s.killed {
		t.Errorf("%d auditors were killed, and the relay's log says of %d that they ended: %q", s.killed, len(ends), ends)
	}
}

// provenKill fails the test unless a process that has ended was killed.
func (s *sidecar) provenKill(t *testing.T, what string) {
	t.Helper()
	if status, ok := s.Cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || !status.Signaled() || status.Signal() != syscall.SIGKILL {
		t.Errorf("%s was not killed: %v", what, s.Cmd.ProcessState)
	}
}

// alive reports whether a process exists and has not ended.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, state, _ := strings.Cut(string(stat), ") ")
	return err == nil && !strings.HasPrefix(state, "Z") && !strings.HasPrefix(state, "X")
}
