package sarif_test

import (
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/internal/sarif"
	"github.com/dpwatch/dpwatch/internal/sarif/sariftest"
)

// TestSchema: a log with every field keeps the schema, an empty one as well, and the schema does not accept anything.
func TestSchema(t *testing.T) {
	t.Parallel()
	rule := func(id string) sarif.Rule {
		text := sarif.Message{Text: "A rule."}
		return sarif.Rule{ID: id, Short: text, Full: text, Help: sarif.Message{Text: "Fix it.", Markdown: "*Fix* it."}, HelpURI: "https://example.org/rules#" + id, Settings: map[string]any{"tags": []string{"privacy"}}}
	}
	result := sarif.Result{
		RuleID: "b", Level: sarif.Error, Message: sarif.Message{Text: "Found."}, Fingerprints: map[string]string{"dpwatch/v1": "3f9c"},
		Locations:    []sarif.Location{{Physical: sarif.File("a query.sql"), Logical: []sarif.Logical{{"3f9c", "3f9c", "query"}}}},
		Suppressions: []sarif.Suppression{{"external", "accepted", "known"}}, Properties: map[string]any{"pairs": 9},
	}
	driver := sarif.Driver{Name: "dpwatch", Version: "v1", InformationURI: "https://example.org"}
	full := text(t, sarif.New(driver, []sarif.Rule{rule("a"), rule("b"), rule("b")}, []sarif.Result{result}))
	for _, log := range []string{full, text(t, sarif.New(driver, nil, nil))} {
		if err := sariftest.Validate([]byte(log)); err != nil {
			t.Errorf("%v\n%s", err, log)
		}
	}
	for _, want := range []string{`"ruleIndex": 1`, `"uri": "a%20query.sql"`} {
		if !strings.Contains(full, want) {
			t.Errorf("no %s in %s", want, full)
		}
	}
	for _, wrong := range []string{
		strings.Replace(full, `"error"`, `"fatal"`, 1), strings.Replace(full, `"startLine": 1`, `"startLine": 0`, 1), strings.Replace(full, `"2.1.0"`, `"2.2.0"`, 1),
		strings.Replace(full, `"https://example.org/rules#a"`, `"docs/ rules#a"`, 1), "{}", "no JSON",
	} {
		if sariftest.Validate([]byte(wrong)) == nil {
			t.Errorf("accepted: %s", wrong)
		}
	}
}

func text(t *testing.T, log sarif.Log) string {
	t.Helper()
	var b strings.Builder
	if err := log.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestFile: a relative path stays one, an absolute one has a scheme, and standard input is no file.
func TestFile(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"q.sql": "q.sql", "./sql/q.sql": "sql/q.sql", "../q.sql": "../q.sql", "/srv/q.sql": "file:///srv/q.sql", "a:b.sql": "./a:b.sql", "é?.sql": "%C3%A9%3F.sql",
	} {
		if got := sarif.File(path); got == nil || got.Artifact.URI != want {
			t.Errorf("%s: %+v, want %s", path, got, want)
		}
	}
	if sarif.File("") != nil || sarif.File("-") != nil {
		t.Error("no file has a location")
	}
}
