package deliver_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dpwatch/dpwatch/internal/alert"
	"github.com/dpwatch/dpwatch/internal/alert/deliver"
	"github.com/dpwatch/dpwatch/internal/eventually"
	"github.com/dpwatch/dpwatch/internal/finding"
)

// TestRoutes: the first route that matches gives the receivers; an alert is sent at its beginning, with a higher
// severity and at its end, to those that receive ends; exec receives the alert on its standard input.
func TestRoutes(t *testing.T) {
	t.Parallel()
	file, out := filepath.Join(t.TempDir(), "alerts"), &output{}
	d, stop := start(t, deliver.Options{
		Receivers: []deliver.Receiver{
			{Name: "out", Type: "stdout", SendResolved: true, Labels: []alert.Label{{Name: "team", Value: "privacy"}}},
			{Name: "run", Type: "exec", Timeout: time.Hour, Command: []string{"/bin/sh", "-c", `cat >> "$0"; echo >> "$0"`, file}},
		},
		Routes: []deliver.Route{
			{Kind: "violation", Severity: finding.Critical, Receivers: []string{"run"}},
			{User: "nobody", Receivers: []string{"run"}},
			{Engine: "shop", Receivers: []string{"out"}},
		},
		Stdout: out,
	})
	d.Notify(violation())
	eventually.True(t, "the first message", func() bool { return strings.Count(out.String(), "\n") == 1 })
	d.Notify(violation())
	worse := violation()
	worse.Lower = 3
	d.Notify(worse)
	eventually.True(t, "the higher severity", func() bool { text, _ := os.ReadFile(file); return strings.Count(string(text), "\n") == 1 })
	d.Notify(alert.Finding{Kind: finding.AuditorUnhealthy, Component: "ledger", Condition: "away"})
	d.Notify(alert.Finding{Kind: finding.AuditorUnhealthy, Component: "ledger", Condition: "away", Status: finding.Resolved})
	d.Notify(alert.Finding{Kind: finding.AuditorUnhealthy, Component: "shadow", Condition: "away", Status: finding.Resolved}) // it never was
	over := violation()
	over.Status = finding.Resolved
	d.Notify(over) // critical: goes to run, which gets no ends
	eventually.True(t, "all messages", func() bool { return strings.Count(out.String(), "\n") == 3 })
	stop()
	var kinds []string
	for line := range strings.Lines(out.String()) {
		var m struct {
			alert.Message
			Labels map[string]string `json:"labels"`
		}
		if err := json.Unmarshal([]byte(line), &m); err != nil || m.Labels["team"] != "privacy" || m.Engine != "shop" {
			t.Fatalf("%v: %s", err, line)
		}
		kinds = append(kinds, string(m.Kind)+" "+m.Status+" "+string(m.Severity))
	}
	if want := "violation firing warning, auditor_unhealthy firing critical, auditor_unhealthy resolved critical"; strings.Join(kinds, ", ") != want {
		t.Errorf("messages %q", kinds)
	}
	var m alert.Message
	text, err := os.ReadFile(file)
	if err != nil || json.Unmarshal(text, &m) != nil || m.Severity != finding.Critical || *m.Lower != 3 || m.Link != "http://dpwatch:9188/queries/3f9c00000000" || m.Runbook != "https://example.org/alerts.md#violation" {
		t.Errorf("exec got %s, %v", text, err)
	}
}

// TestOtherEvidence: an alert about floating point becomes one about a violation when there is other evidence, and
// stays one; it is the same alert, and it ends once.
func TestOtherEvidence(t *testing.T) {
	t.Parallel()
	out := &output{}
	d, stop := start(t, deliver.Options{Receivers: []deliver.Receiver{{Name: "out", Type: "stdout", SendResolved: true}}, Stdout: out})
	floating, over := violation(), violation()
	floating.Kind, floating.Lower, over.Status = finding.FloatingPoint, 2.9, finding.Resolved
	less := floating
	less.Lower = 5
	for _, f := range []alert.Finding{floating, floating, violation(), less, over} {
		d.Notify(f)
	}
	eventually.True(t, "all messages", func() bool { return strings.Count(out.String(), "\n") >= 3 })
	stop()
	var states []string
	ids := map[string]bool{}
	for line := range strings.Lines(out.String()) {
		var m alert.Message
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatal(err)
		}
		ids[m.ID] = true
		states = append(states, string(m.Kind)+" "+m.Status+" "+string(m.Severity))
		if m.Status == alert.Firing && (m.Kind == finding.FloatingPoint) != strings.Contains(m.Title, "lowest bits") || !strings.HasSuffix(m.Runbook, "#"+string(m.Kind)) {
			t.Errorf("message %+v", m)
		}
	}
	if want := "floating_point firing warning, violation firing warning, violation resolved warning"; strings.Join(states, ", ") != want || len(ids) != 1 {
		t.Errorf("messages %q of alerts %v, want %s of one", states, ids, want)
	}
}
