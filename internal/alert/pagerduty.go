package alert

import "encoding/json"

// PagerDutyURL is the address of PagerDuty's Events API v2.
const PagerDutyURL = "https://events.pagerduty.com/v2/enqueue"

// PagerDuty returns the body of a PagerDuty Events v2 request. The incident of an alert has its ID as the key.
func PagerDuty(m Message, routingKey string, extra []Label) ([]byte, error) {
	if m.Status == Ended {
		return json.Marshal(map[string]string{"routing_key": routingKey, "event_action": "resolve", "dedup_key": m.ID})
	}
	title := m.Title
	if m.Test {
		title = "[test] " + title
	}
	event := map[string]any{
		"routing_key": routingKey, "event_action": "trigger", "dedup_key": m.ID, "client": "dpwatch",
		"payload": map[string]any{
			"summary": cut(title, 1024), "severity": m.Severity, "source": m.Engine, "timestamp": m.StartsAt, "class": m.Kind,
			"custom_details": labelled{m, labels(extra)},
		},
	}
	var links []map[string]string
	for _, l := range []Label{{"finding", m.Link}, {"runbook", m.Runbook}} {
		if l.Value != "" {
			links = append(links, map[string]string{"href": l.Value, "text": l.Name})
		}
	}
	if links != nil {
		event["links"] = links
	}
	return json.Marshal(event)
}
