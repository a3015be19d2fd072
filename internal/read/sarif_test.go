package read_test

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/analysis/diagnosis"
	"github.com/dpwatch/dpwatch/docs"
	"github.com/dpwatch/dpwatch/internal/read"
	"github.com/dpwatch/dpwatch/internal/sarif"
	"github.com/dpwatch/dpwatch/internal/sarif/sariftest"
	"github.com/dpwatch/dpwatch/internal/withheld"
)

// exported returns the only run of the SARIF of explanations, and its text.
func exported(t *testing.T, all []read.Explanation, file string) (sarif.Run, string) {
	t.Helper()
	var b strings.Builder
	if err := read.SARIF(all, file, "v1.2.3").Write(&b); err != nil {
		t.Fatal(err)
	}
	if err := sariftest.Validate([]byte(b.String())); err != nil {
		t.Errorf("%v\n%s", err, b.String())
	}
	var log sarif.Log
	if err := json.Unmarshal([]byte(b.String()), &log); err != nil || len(log.Runs) != 1 {
		t.Fatal(err, b.String())
	}
	return log.Runs[0], b.String()
}

// report returns a report of an audit of a claim of 0.5.
func report(verdict analysis.Verdict, lower float64) *analysis.Report {
	r := analysis.Refused(analysis.Claim{Epsilon: .5}, .95, "")
	r.Verdict, r.EpsilonLower, r.Trials, r.Claimed.Source = verdict, analysis.Float(lower), analysis.Trials{D0: 90, D1: 90}, "function"
	detected := 80
	if r.Reason = ""; verdict == analysis.Violation {
		r.DetectedAt = &detected
	}
	return &r
}

// TestSARIF: a violation is an error of the rule of its likeliest cause, with the help of that cause; one that the
// control blocks is a warning, and another audit without a conclusion a note. Other audits are no results.
func TestSARIF(t *testing.T) {
	t.Parallel()
	violation := report(analysis.Violation, 2)
	violation.Finding = &analysis.Finding{
		HowBad: analysis.HowBad{Text: "so bad.", Basis: analysis.Certified, Confidence: .95}, What: analysis.What{Text: withheld.New("grp=rare", "a group"), Basis: analysis.Likely},
		Causes: []diagnosis.Cause{
			{Code: diagnosis.NoiseScale, Name: "too little noise", Text: withheld.New("A shift of 4711.", "A shift."), Page: diagnosis.Page + "#noise_scale"}, {Code: diagnosis.Clipping, Name: "no clipping", Page: diagnosis.Page + "#clipping"},
		},
	}
	blocked, open := report(analysis.Inconclusive, 1), report(analysis.Inconclusive, math.NaN())
	blocked.Control, open.Reason = &analysis.Control{State: analysis.ControlBlocked}, "too few trials"
	deterministic := report(analysis.Violation, math.NaN())
	deterministic.Deterministic, deterministic.DetectedAt = &analysis.Deterministic{Description: "the answers never vary"}, nil
	former := report(analysis.NoEvidence, .1)
	audit := func(key string, r *analysis.Report) read.Explanation {
		return read.Explain(read.Audit{ID: key, Key: key + key, Route: "main", Summary: "SELECT $1", Verdict: string(r.Verdict), Report: r}, nil)
	}
	standing := audit("f0", former)
	standing.Audit.Standing = &read.Standing{FirstSeen: time.Unix(1e9, 0), Lower: 3, Trials: 70, Claimed: .5}
	standing = read.Explain(func() read.Audit { a := standing.Audit; a.Verdict, a.Route = "violation", "main"; return a }(), nil)
	accepted := audit("ac", violation)
	accepted.Audit.Accepted = &read.Accepted{Operator: "ann", Reason: "OPS-411"}
	run, text := exported(t, []read.Explanation{
		audit("aa", violation), audit("bb", blocked), audit("cc", open), audit("dd", report(analysis.NoEvidence, .1)), audit("ee", deterministic), standing, accepted, audit("99", report("", .1)),
	}, "sql/q.sql")
	type row struct {
		rule  string
		level sarif.Level
	}
	want := []row{{"noise_scale", "error"}, {"noise_of_a_copy", "warning"}, {"inconclusive", "note"}, {"deterministic", "error"}, {"violation", "error"}, {"noise_scale", "error"}}
	var got []row
	for _, r := range run.Results {
		got = append(got, row{r.RuleID, r.Level})
		if id := run.Tool.Driver.Rules[r.RuleIndex].ID; id != r.RuleID {
			t.Errorf("the index of %s is that of %s", r.RuleID, id)
		}
		if p := r.Locations[0].Physical; p == nil || p.Artifact.URI != "sql/q.sql" || r.Locations[0].Logical[0].QualifiedName[:5] != "main/" {
			t.Errorf("%s: locations %+v", r.RuleID, r.Locations)
		}
		if (r.Suppressions != nil) != (r.Fingerprints["dpwatch/v1"] == run.Results[5].Fingerprints["dpwatch/v1"]) {
			t.Errorf("%s: suppressions %+v", r.RuleID, r.Suppressions)
		}
	}
	if !slices.Equal(got, want) {
		t.Fatalf("results %v, want %v", got, want)
	}
	if rules := run.Tool.Driver.Rules; len(rules) != 5 || rules[0].Help.Markdown != docs.Cause("noise_scale") || rules[0].Help.Markdown == "" || !strings.HasSuffix(rules[0].HelpURI, "/docs/causes.md#noise_scale") || rules[1].Help.Markdown == "" || rules[2].Help.Markdown != "" {
		t.Errorf("rules %+v", run.Tool.Driver.Rules)
	}
	for i, words := range [][]string{
		{"VIOLATION: this query leaks more than the claimed epsilon 0.5.\nQuery: SELECT $1\nCertified at confidence 0.95: so bad.", "Likely: a group", "Likely: too little noise. A shift. See docs/causes.md#noise_scale"},
		{"Inconclusive.", "control: blocked"},
		{"Inconclusive. Reason: too few trials."},
		{"the answers never vary"},
		{"VIOLATION, first seen"},
	} {
		for _, w := range words {
			if !strings.Contains(run.Results[i].Message.Text, w) {
				t.Errorf("%s: no %q in %s", run.Results[i].RuleID, w, run.Results[i].Message.Text)
			}
		}
	}
	type figures struct {
		Audit, Engine, Query, Verdict string
		Claimed                       struct{ Epsilon float64 }
		Lower                         *float64 `json:"epsilon_lower"`
		Confidence                    float64
		Pairs                         int
		Causes                        []string
	}
	for i, lower := range []float64{2, math.NaN(), math.NaN(), math.NaN(), 3, 2} {
		var p figures
		again, _ := json.Marshal(run.Results[i].Properties)
		if err := json.Unmarshal(again, &p); err != nil || p.Engine != "main" || p.Claimed.Epsilon != .5 || p.Query != "SELECT $1" || p.Pairs < 70 || (p.Lower == nil) != math.IsNaN(lower) || p.Lower != nil && *p.Lower != lower || i == 0 && !slices.Equal(p.Causes, []string{"noise_scale", "clipping"}) {
			t.Errorf("%v, %s", err, again)
		}
	}
	if strings.Contains(text, "rare") || strings.Contains(text, "4711") {
		t.Errorf("a value of a row is in %s", text)
	}
	if empty, text := exported(t, []read.Explanation{audit("dd", report(analysis.NoEvidence, .1))}, ""); len(empty.Results) != 0 || !strings.Contains(text, `"results": []`) {
		t.Errorf("no evidence has results: %s", text)
	}
}

// TestSARIFFingerprint: the fingerprint is that of the query and its engine, whatever was found, and values that an
// explanation reveals are not in the file.
func TestSARIFFingerprint(t *testing.T) {
	t.Parallel()
	result := func(engine, key string, r *analysis.Report, revealed bool) sarif.Result {
		if revealed {
			*r = r.Reveal()
		}
		x := read.Explain(read.Audit{ID: key[:2], Key: key, Route: engine, Verdict: string(r.Verdict), Report: r, LastSeen: time.Now()}, nil)
		x.Revealed = revealed
		run, text := exported(t, []read.Explanation{x}, "")
		if strings.Contains(text, "rare") {
			t.Errorf("a value of a row is in %s", text)
		}
		if run.Results[0].Locations[0].Physical != nil {
			t.Error("a file without a name")
		}
		return run.Results[0]
	}
	first, second := report(analysis.Violation, 2), report(analysis.Violation, 3)
	second.Trials.D0, second.Event = 400, &analysis.Event{Description: withheld.New("group rare", "a group")}
	second.Finding = &analysis.Finding{HowBad: analysis.HowBad{Basis: analysis.Likely}, What: analysis.What{Text: withheld.New("grp=rare", "a group")}, Causes: []diagnosis.Cause{{Code: "support", Name: "cut off", Text: withheld.New("grp=rare", "")}}}
	a, b := result("main", "3f9c3f9c", first, false), result("main", "3f9c3f9c", second, true)
	if a.Fingerprints["dpwatch/v1"] != b.Fingerprints["dpwatch/v1"] || len(a.Fingerprints["dpwatch/v1"]) != 32 || a.Fingerprints["primaryLocationLineHash"] != a.Fingerprints["dpwatch/v1"]+":1" {
		t.Errorf("fingerprints %v and %v", a.Fingerprints, b.Fingerprints)
	}
	if !strings.Contains(b.Message.Text, "Likely: cut off. See ") {
		t.Errorf("the cause is not named: %s", b.Message.Text)
	}
	for _, other := range []sarif.Result{result("other", "3f9c3f9c", first, false), result("main", "3f9d3f9c", first, false)} {
		if other.Fingerprints["dpwatch/v1"] == a.Fingerprints["dpwatch/v1"] {
			t.Error("two queries have one fingerprint")
		}
	}
}
