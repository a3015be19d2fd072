package pages

import (
	"html/template"
	"strings"
	"testing"
	"time"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/app/status"
	"github.com/dpwatch/dpwatch/internal/read"
)

// TestRender: the templates find every field and method that they use.
func TestRender(t *testing.T) {
	t.Parallel()
	s := &site{templates: map[string]*template.Template{}}
	if err := s.parse(); err != nil {
		t.Fatal(err)
	}
	r := analysis.Refused(analysis.Claim{Epsilon: 1}, 0.95, "")
	r.Verdict, r.EpsilonLower = analysis.Violation, 2
	a := read.Audit{
		ID: "id", Key: "key", Summary: "SELECT a\x1b", User: "ann", Verdict: "violation", Report: &r, Seen: 2, LastSeen: time.Now(), EngineName: "e",
		Accepted: &read.Accepted{Until: time.Now()}, SQL: &read.SQLPair{D0: "a", D1: "b"}, Destinations: []string{"into t"},
	}
	d := read.NewDetails(read.Explain(a, &read.Stored{Key: "key", Engine: "e", Begun: 1, EngineEpoch: "v", DataEpoch: "c", History: []read.Event{{}}, Actions: []read.Action{{}}}), true)
	d.Asked = read.Asked{Statement: "SELECT a", Parameters: []string{"1"}, Then: []read.Following{{Statement: "SELECT b"}}}
	d.Who.Units = []read.Unit{{Schema: "d1"}}
	for name, data := range map[string]any{
		"overview": overviewData{Engines: []status.Overview{{Engine: "e", Found: []read.Audit{a}}}},
		"queries":  queriesData{Rows: []read.Audit{a}, Engines: true},
		"query":    newQueryData(&d),
	} {
		var b strings.Builder
		if err := s.templates[name].Execute(&b, &frame{content: content{Title: "T", Data: data}}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if !strings.Contains(b.String(), "SELECT a") || strings.Contains(b.String(), "SELECT a\x1b") && name != "query" {
			t.Errorf("%s: %s", name, b.String())
		}
	}
}
