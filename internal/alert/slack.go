package alert

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Slack returns the body of an incoming webhook.
func Slack(m Message, extra []Label) ([]byte, error) {
	head := fmt.Sprintf("[%s] %s: %s", strings.ToUpper(m.Status), m.Severity, m.Title)
	if m.Test {
		head = "[TEST] " + head
	}
	var lines []string
	for _, l := range append([]Label{
		{"engine", m.Engine},
		{"database", m.Database},
		{"users", strings.Join(m.Users, ", ")},
		{"applications", strings.Join(m.Applications, ", ")},
		{"query", m.Query},
		{"statement", m.Summary},
		{"detail", m.Detail},
		{"what to do", m.Action},
	}, extra...) {
		if l.Value != "" {
			lines = append(lines, "*"+l.Name+":* "+slackText(l.Value))
		}
	}
	if m.Link != "" {
		lines = append(lines, "<"+m.Link+"|finding>")
	}
	if m.Runbook != "" {
		lines = append(lines, "<"+m.Runbook+"|runbook>")
	}
	section := func(text string) map[string]any {
		return map[string]any{"type": "section", "text": map[string]string{"type": "mrkdwn", "text": cut(text, 2900)}}
	}
	return json.Marshal(map[string]any{
		"text":   slackText(cut(head, 300)), // of notifications
		"blocks": []any{section("*" + slackText(head) + "*"), section(strings.Join(lines, "\n"))},
	})
}

// slackText escapes the characters that Slack gives a meaning.
func slackText(text string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(text)
}

// cut returns at most n bytes of a text, without a part of a character.
func cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return strings.ToValidUTF8(text[:n-3], "") + "..."
}
