package alert

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/dpwatch/dpwatch/internal/finding"
)

// Label is a name and a value that a receiver adds to every message.
type Label struct{ Name, Value string }

type amAlert struct {
	Labels       map[string]string `json:"labels"`
	Annotations  map[string]string `json:"annotations"`
	StartsAt     time.Time         `json:"startsAt"`
	EndsAt       time.Time         `json:"endsAt"`
	GeneratorURL string            `json:"generatorURL,omitempty"`
}

// AlertmanagerName is the label alertname of a kind: budget_exceeded becomes DPWatchBudgetExceeded.
func AlertmanagerName(kind finding.Kind) string {
	name := "DPWatch"
	for word := range strings.SplitSeq(string(kind), "_") {
		if word != "" {
			name += strings.ToUpper(word[:1]) + word[1:]
		}
	}
	return name
}

// Alertmanager returns the body of POST /api/v2/alerts. An Alertmanager ends a firing alert at until unless it is sent
// again. The labels identify an alert: they are the same over its life, apart from the extra labels of the receiver.
func Alertmanager(messages []Message, extra []Label, until time.Time) ([]byte, error) {
	out := make([]amAlert, len(messages))
	for i, m := range messages {
		out[i] = amAlert{
			Labels:      map[string]string{"alertname": AlertmanagerName(m.Kind), "dpwatch_alert": m.ID, "kind": string(m.Kind), "engine": m.Engine},
			Annotations: map[string]string{"summary": m.Title},
			StartsAt:    m.StartsAt, EndsAt: until, GeneratorURL: m.Link,
		}
		if m.Status == Ended {
			out[i].EndsAt = m.EndsAt
		}
		a := &out[i]
		for _, l := range []struct {
			into        map[string]string
			name, value string
		}{
			{a.Labels, "severity", string(m.Severity)},
			{a.Labels, "route", m.Route},
			{a.Labels, "database", m.Database},
			{a.Labels, "query_id", m.Query},
			{a.Annotations, "description", m.Detail},
			{a.Annotations, "action", m.Action},
			{a.Annotations, "query_summary", m.Summary},
			{a.Annotations, "users", strings.Join(m.Users, ", ")},
			{a.Annotations, "applications", strings.Join(m.Applications, ", ")},
			{a.Annotations, "runbook_url", m.Runbook},
		} {
			if l.value != "" {
				l.into[l.name] = l.value
			}
		}
		if m.Test {
			a.Labels["test"] = "true"
		}
		for _, l := range extra {
			a.Labels[l.Name] = l.Value
		}
	}
	return json.Marshal(out)
}
