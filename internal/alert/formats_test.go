package alert_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/dpwatch/dpwatch/internal/alert"
	"github.com/dpwatch/dpwatch/internal/finding"
	"github.com/dpwatch/dpwatch/internal/withheld"
)

var at = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

// finding has a value of a row, which is withheld, and a literal that no message may have.
func leak() alert.Finding {
	return alert.Finding{
		Kind: finding.Violation, ID: "3f9c", Group: "g", Summary: "SELECT <x> & y", User: "ann", Database: "app", Neighbour: "d1", EngineEpoch: "e1", Epsilon: 0.5, Source: "comment",
		Lower: 1.25, Confidence: 0.95, Estimate: math.NaN(), Odds: math.NaN(), Line: withheld.New("group 'Oslo' tells", "a group tells"), SQL: "SELECT 4711",
	}
}

var plain = alert.Style{Engine: "shop", Scale: finding.Scale{{Least: 0, Severity: finding.Warning}, {Least: 0.75, Severity: finding.Error}}}

// TestFormats: every format has the identifier, the severity and the end of an alert in its place, and none has values
// of rows or literals.
func TestFormats(t *testing.T) {
	t.Parallel()
	m := plain.Message(leak(), at).State()
	over := m
	over.Status, over.EndsAt = alert.Ended, at.Add(time.Minute)
	extra := []alert.Label{{Name: "team", Value: "privacy"}}
	for _, tc := range []struct {
		name   string
		encode func(alert.Message) ([]byte, error)
		firing []string
		ended  []string
	}{
		{
			"alertmanager", func(m alert.Message) ([]byte, error) {
				return alert.Alertmanager([]alert.Message{m}, extra, at.Add(time.Hour))
			},
			[]string{`"dpwatch_alert":"` + m.ID + `"`, `"severity":"error"`, `"team":"privacy"`, `"endsAt":"2030-01-02T04:04:05Z"`},
			[]string{`"dpwatch_alert":"` + m.ID + `"`, `"endsAt":"2030-01-02T03:05:05Z"`},
		},
		{
			"webhook", func(m alert.Message) ([]byte, error) { return alert.CloudEvent(m, extra) },
			[]string{`"id":"` + m.Delivery + `"`, `"type":"io.dpwatch.alert.firing"`, `"subject":"` + m.ID + `"`, `"epsilon_lower":1.25`, `"labels":{"team":"privacy"}`},
			[]string{`"type":"io.dpwatch.alert.resolved"`},
		},
		{
			"slack", func(m alert.Message) ([]byte, error) { return alert.Slack(m, extra) },
			[]string{"[FIRING] error: a query leaks epsilon of at least 1.25 and claims 0.5", `*statement:* SELECT \u0026lt;x\u0026gt; \u0026amp; y`},
			[]string{"[RESOLVED]"},
		},
		{
			"pagerduty", func(m alert.Message) ([]byte, error) { return alert.PagerDuty(m, "key", extra) },
			[]string{`"event_action":"trigger"`, `"dedup_key":"` + m.ID + `"`, `"severity":"error"`, `"routing_key":"key"`},
			[]string{`"event_action":"resolve"`, `"dedup_key":"` + m.ID + `"`},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			for status, want := range map[*alert.Message][]string{&m: tc.firing, &over: tc.ended} {
				body, err := tc.encode(*status)
				if err != nil || !json.Valid(body) {
					t.Fatalf("%v: %s", err, body)
				}
				for _, part := range want {
					if !strings.Contains(string(body), part) {
						t.Errorf("no %s in %s", part, body)
					}
				}
				if strings.Contains(string(body), "Oslo") || strings.Contains(string(body), "4711") {
					t.Errorf("a value of a row or a literal in %s", body)
				}
			}
		})
	}
}

// TestMessage: the identifier depends on the engine, the query and the epoch in which the violation was first seen, and
// on nothing else.
func TestMessage(t *testing.T) {
	t.Parallel()
	first := plain.Message(leak(), at)
	same := leak()
	same.Neighbour, same.User, same.Lower = "d2", "bob", 3
	if m := plain.Message(same, at.Add(time.Hour)); m.ID != first.ID || m.Subject != first.Subject {
		t.Errorf("another neighbour: %s, want %s", m.ID, first.ID)
	}
	later := leak()
	later.EngineEpoch = "e2"
	if m := plain.Message(later, at); m.ID == first.ID || m.Subject != first.Subject {
		t.Error("another epoch has the same identifier")
	}
	fixed := leak()
	fixed.Kind, fixed.Lower = finding.Deterministic, math.NaN()
	if m := plain.Message(fixed, at); m.Kind != finding.Deterministic || m.Severity != finding.Error || m.Lower != nil {
		t.Errorf("deterministic: %+v", m)
	}
	floating := leak()
	floating.Kind = finding.FloatingPoint
	if m := plain.Message(floating, at); m.ID != first.ID || m.Severity != finding.Warning || m.Lower == nil || !strings.Contains(m.Title, "lowest bits") || m.Action != first.Action {
		t.Errorf("floating point: %+v", m)
	}
	seen := map[finding.Kind]bool{finding.FloatingPoint: true, finding.Deterministic: true}
	for _, f := range []alert.Finding{
		leak(),
		{Kind: finding.Unconfirmed, ID: "1"},
		{Kind: finding.CopiesDiffer, ID: "1", Reason: "r"},
		{Kind: finding.SessionEnds, ID: "1", Reason: "r"},
		{Kind: finding.EngineDrift, Function: "public.f"},
		{Kind: finding.BudgetExceeded, Budget: alert.Budget{Name: "b", Spent: math.Inf(1)}},
		{Kind: finding.UnclaimedRead, Group: "g"},
		{Kind: finding.CoverageLow, Condition: "c"},
		{Kind: finding.AuditorUnhealthy, Condition: "c", Component: "ledger"},
	} {
		m := plain.Message(f, at)
		if m.Title == "" || m.Subject == "" || m.Status != alert.Firing || !m.Severity.AtLeast(finding.Info) {
			t.Errorf("%s: %+v", f.Kind, m)
		}
		if _, err := json.Marshal(m); err != nil {
			t.Errorf("%s: %v", f.Kind, err)
		}
		seen[m.Kind] = true
	}
	for _, kind := range finding.Kinds() {
		if !seen[kind] {
			t.Errorf("no finding of kind %s", kind)
		}
	}
}
