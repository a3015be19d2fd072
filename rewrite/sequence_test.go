package rewrite_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/rewrite"
	"github.com/dpwatch/dpwatch/rewrite/reasons"
)

// The plan of a sequence has the tables, the claims and the texts of its statements together, and an identity that
// depends on their order.
func TestAnalyzeSequence(t *testing.T) {
	t.Parallel()
	r, err := rewrite.New(rewrite.Options{
		Protected: []rewrite.Table{{Schema: "public", Name: "users"}, {Schema: "public", Name: "visits"}},
		Claims:    rewrite.ClaimRules{TrustComment: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	const users, visits = "SELECT count(*) FROM users /*dp_epsilon='0.5',dp_delta='1e-6'*/", "SELECT sum(n) FROM visits /*dp_epsilon='0.25'*/"
	plan := func(sql string, then ...string) *rewrite.Plan {
		t.Helper()
		q := capture.Query{SQL: sql}
		for _, text := range then {
			q.Then = append(q.Then, capture.Step{SQL: text})
		}
		p, err := r.Analyze(q)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	p := plan(users, visits)
	if diff := cmp.Diff(&rewrite.Claim{Epsilon: .75, Delta: 1e-6, Source: rewrite.SourceSum}, p.Claim); diff != "" {
		t.Errorf("claim (-want +got):\n%s", diff)
	}
	if len(p.Tables) != 2 || len(p.Steps()) != 2 || !strings.HasPrefix(p.Summary, "2 queries together: SELECT count(*) FROM users") || strings.Contains(p.Summary, "0.25") {
		t.Errorf("tables %v, %d steps, summary %q", p.Tables, len(p.Steps()), p.Summary)
	}
	disjoint, err := rewrite.New(rewrite.Options{
		Protected: []rewrite.Table{{Schema: "public", Name: "users"}, {Schema: "public", Name: "visits"}},
		Claims:    rewrite.ClaimRules{TrustComment: true}, MaxOfSequence: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	largest, err := disjoint.Analyze(capture.Query{SQL: users, Then: []capture.Step{{SQL: visits}}})
	if err != nil || largest.Key == p.Key {
		t.Fatalf("%v; another composition needs another key", err)
	}
	if diff := cmp.Diff(&rewrite.Claim{Epsilon: .5, Delta: 1e-6, Source: rewrite.SourceMax}, largest.Claim); diff != "" {
		t.Errorf("claim (-want +got):\n%s", diff)
	}
	text, err := p.For("d1")
	if err != nil || strings.Count(text, "d1") != 2 || !strings.Contains(text, ";\n") {
		t.Errorf("text %q, error %v", text, err)
	}
	keys := map[string]bool{plan(users).Key: true, p.Key: true, plan(visits, users).Key: true, plan(users, visits, users).Key: true}
	if len(keys) != 4 || plan(users, visits).Key != p.Key {
		t.Errorf("%d keys of four mechanisms", len(keys))
	}
	if c := plan(users, "SELECT sum(n) FROM visits").Claim; c != nil {
		t.Errorf("claim %+v although a statement has none", c)
	}
	for want, then := range map[rewrite.Reason]string{reasons.NotSelect: "DELETE FROM users", reasons.MultipleStatements: visits + "; " + visits} {
		var refused *rewrite.UnsupportedError
		if _, err := r.Analyze(capture.Query{SQL: users, Then: []capture.Step{{SQL: then}}}); !errors.As(err, &refused) || refused.Reason != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
