package main

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/dpwatch/dpwatch/rewrite/reasons"
)

// TestMetrics: all metrics follow Prometheus's conventions and, except those of the relay's own process, have the
// prefix dpwatch_. Every reason for skipping a statement, and the auditor's memory, has its series from the start.
func TestMetrics(t *testing.T) {
	t.Parallel()
	s := startSidecar(t, "")
	s.auditor(t, 0)
	var text string
	s.until(t, "the auditor's metrics", func() bool {
		_, text = s.get(t, "/metrics")
		return strings.Contains(text, "dpwatch_audits{")
	})
	problems, err := promlint.New(strings.NewReader(text)).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
	if promtool, err := exec.LookPath("promtool"); err == nil {
		cmd := exec.Command(promtool, "check", "metrics")
		cmd.Stdin = strings.NewReader(text)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool check metrics: %v\n%s", err, out)
		}
	}
	for line := range strings.Lines(text) {
		name, found := strings.CutPrefix(line, "# TYPE ")
		if found && !strings.HasPrefix(name, "dpwatch_") && !strings.HasPrefix(name, "go_") && !strings.HasPrefix(name, "process_") {
			t.Errorf("a metric without the prefix: %s", name)
		}
	}
	want := []string{
		"dpwatch_shadow_up ", "dpwatch_open_violations 0", "dpwatch_auditor_memory_bytes ",
		"dpwatch_auditor_memory_limit_bytes 5.36870912e+08", "dpwatch_auditor_process_resident_memory_bytes ", "dpwatch_audit_memory_bytes ",
		"dpwatch_dp_queries 0", "dpwatch_oldest_waiting_audit_age_seconds 0", `dpwatch_audits{state="queued"} 0`,
	}
	for _, reason := range append(reasons.All(), "too_many_audits", "shape_sampled", "internal_error", "other") {
		want = append(want, `dpwatch_queries_skipped_total{reason="`+string(reason)+`"} 0`)
	}
	for _, line := range want {
		if !strings.Contains(text, line) {
			t.Errorf("no series %s", line)
		}
	}
	if strings.Contains(text, "epsilon_estimate") {
		t.Error("the estimate is exported as if it were a finding")
	}
}
