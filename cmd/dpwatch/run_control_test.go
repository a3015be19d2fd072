package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
)

// TestRunControlAudits: dpwatch run shows the false alarms on identical data in its status, metrics and first page. An
// engine without state has none; one that answers from rows which were drawn for each copy has one, and no violation. By
// chance this is otherwise with a probability below 1e-6.
func TestRunControlAudits(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		twin, noise, claim, alarms string
	}{
		"no state":           {"TABLE d0.people", "5", "0.5", "0"},
		"an answer for each": {"TABLE d0.people UNION ALL SELECT 1000 + g, 0 FROM generate_series(1, 9 + floor(10 * random())::int) g", "0.5", "2.5", "1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &sidecar{direct: copies(t)}
			pgtest.Exec(t, s.direct, "CREATE TABLE people AS TABLE d0.people; CREATE SCHEMA d0_twin; CREATE TABLE d0_twin.people AS "+tc.twin)
			cfg := pgtest.Connect(t, s.direct).Config()
			s.run(t, file(t, "dpwatch.yaml", fmt.Sprintf(`
proxy: {listen: 127.0.0.1:0, upstream: "%s:%d"}
admin: {listen: 127.0.0.1:0}
shadow: {dsn: %q, twin: d0_twin}
privacy: {protected: [public.people]}
claims: {safe_functions: [noisy], trust: [comment]}
audit: {measure_trials: 0, max_trials: 400, confidence: 0.9999999, share: 1, watch_share: 0.5, control_share: 1, sequences: false}
ledger: {dsn: memory}
`, cfg.Host, cfg.Port, s.direct)))
			exec0(t, s.connect(t), fmt.Sprintf("SELECT noisy(count(*), %s) FROM people /*dp_epsilon='%s'*/", tc.noise, tc.claim))
			var status struct {
				Audit struct {
					FalseAlarms struct {
						Audits int     `json:"control_audits"`
						Alarms int     `json:"alarms"`
						Upper  float64 `json:"rate_upper"`
					} `json:"false_alarms"`
					Audits []struct {
						Verdict string `json:"verdict"`
					} `json:"audits"`
				} `json:"audit"`
			}
			s.until(t, "a control audit and the audit of its query", func() bool {
				_, body := s.get(t, "/api/status")
				if err := json.Unmarshal([]byte(body), &status); err != nil {
					t.Fatal(err)
				}
				return status.Audit.FalseAlarms.Audits == 1 && status.Audit.Audits[0].Verdict == "no_evidence"
			})
			if f := status.Audit.FalseAlarms; fmt.Sprint(f.Alarms) != tc.alarms || f.Upper < float64(f.Alarms) || f.Upper > 1 || len(status.Audit.Audits) != 1 {
				t.Errorf("%+v", status)
			}
			line := "on identical data " + tc.alarms + " of 1 control audits, a rate of at most "
			call(t, "", "status", "--address", s.admin).want(t, exitDone, "false alarms", line)
			if _, page := s.get(t, "/"); !strings.Contains(page, line) {
				t.Errorf("the first page lacks %q", line)
			}
			for _, pattern := range []string{
				`dpwatch_control_audits_total\{(engine="[^"]*",)?result="alarm"\} ` + tc.alarms, `dpwatch_false_alarm_rate_upper_bound(\{.*\})? [01]`, `dpwatch_open_violations(\{.*\})? 0`,
			} {
				s.until(t, "/metrics has "+pattern, func() bool {
					_, metrics := s.get(t, "/metrics")
					return regexp.MustCompile(pattern).MatchString(metrics)
				})
			}
			if log := s.log.String(); strings.Contains(log, `"privacy violation"`) || strings.Contains(log, "a false alarm on identical data") != (tc.alarms == "1") {
				t.Errorf("the log has an alert, or the wrong number of false alarms:\n%s", log)
			}
		})
	}
}
