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

// TestAskedClaim: what the engine states takes the place of arguments, rules and the default; the client may lower it,
// and raise it if trusted. An engine that states nothing leaves the claim to these. The question is the statement on D0.
func TestAskedClaim(t *testing.T) {
	t.Parallel()
	text := func(s string) *string { return &s }
	row := func(values ...string) (all []*string) {
		for _, v := range values {
			all = append(all, text(v))
		}
		return all
	}
	stated := func(epsilon, delta float64) *rewrite.Claim {
		return &rewrite.Claim{Epsilon: epsilon, Delta: delta, Source: "engine"}
	}
	byDefault := &rewrite.Claim{Epsilon: 2, Source: "default"}
	for name, c := range map[string]struct {
		sql    string // "" = one with an argument
		names  string
		row    []*string
		trust  bool
		want   *rewrite.Claim
		reason rewrite.Reason
		detail string
	}{
		"epsilon and delta":          {names: "epsilon delta", row: row("3", "1e-6"), want: stated(3, 1e-6)},
		"in another order":           {names: "delta EPSILON", row: row("1e-6", "3"), want: stated(3, 1e-6)},
		"one column":                 {names: "dp_cost", row: row(" 0.25 "), want: stated(0.25, 0)},
		"no delta":                   {names: "epsilon delta", row: []*string{text("1"), nil}, want: stated(1, 0)},
		"other columns":              {names: "mechanism epsilon", row: row("laplace", "1"), want: stated(1, 0)},
		"nothing":                    {sql: "SELECT count(*) FROM users", names: "epsilon", row: []*string{nil}, want: byDefault},
		"no row":                     {sql: "SELECT count(*) FROM users", want: byDefault},
		"nothing about an argument":  {names: "epsilon", row: []*string{nil}, want: &rewrite.Claim{Epsilon: 0.5, Source: "argument", Rule: "anon_count"}},
		"a comment lowers it":        {sql: "SELECT count(*) FROM users /*dp_epsilon='0.1'*/", names: "epsilon", row: row("3"), want: &rewrite.Claim{Epsilon: 0.1, Source: "comment"}},
		"a comment does not raise":   {sql: "SELECT count(*) FROM users /*dp_epsilon='9'*/", names: "epsilon", row: row("3"), want: stated(3, 0)},
		"a trusted comment raises":   {sql: "SELECT count(*) FROM users /*dp_epsilon='9'*/", names: "epsilon", row: row("3"), trust: true, want: &rewrite.Claim{Epsilon: 9, Source: "comment"}},
		"no number":                  {names: "epsilon", row: row("much"), reason: reasons.BadClaim, detail: "the engine's answer to claims.ask has no number as epsilon"},
		"no number as delta":         {names: "epsilon delta", row: row("1", "small"), reason: reasons.BadClaim, detail: "has no number as delta"},
		"no claim":                   {names: "epsilon delta", row: row("1", "1"), reason: reasons.BadClaim, detail: "is no claim"},
		"not a number":               {names: "epsilon", row: row("NaN"), reason: reasons.BadClaim, detail: "is no claim"},
		"a negative rho":             {names: "rho", row: row("-1"), reason: reasons.BadClaim, detail: "has a rho that is no claim"},
		"a curve that is none":       {names: "curve", row: row("x"), reason: reasons.BadClaim, detail: "has a curve that is none"},
		"two claims":                 {names: "epsilon rho", row: row("1", "1"), reason: reasons.BadClaim, detail: "has both epsilon and rho"},
		"a value that is no message": {names: "epsilon", row: row("1717171717 secret"), reason: reasons.BadClaim, detail: "has no number"},
	} {
		o := options()
		o.Claims.Ask, o.Neighbours, o.Claims.TrustComment = true, []string{"d0", "d1"}, c.trust
		o.Claims.Default = &rewrite.Claim{Epsilon: 2}
		r := newRewriter(t, o)
		q := capture.Query{SQL: c.sql, Database: "shop", Settings: map[string]string{"dp.scale": "2"}}
		if q.SQL == "" {
			q.SQL = "SELECT anon_count(id, 0.5) FROM users"
		}
		_, err := r.Analyze(q)
		var refusal *rewrite.UnsupportedError
		if !errors.As(err, &refusal) || refusal.Question() == nil {
			t.Errorf("%s: no question: %v", name, err)
			continue
		}
		question := *refusal.Question()
		if !question.Asked || question.SQL != strings.Replace(q.SQL, "users", `"d0"."users"`, 1) && question.SQL != strings.Replace(q.SQL, "users", `"d0".users`, 1) || question.Settings["dp.scale"] != "2" || question.SearchPath == nil {
			t.Errorf("%s: question %+v", name, question)
		}
		plan, err := r.AnalyzeWith(q, map[string]rewrite.Value{question.SQL: rewrite.Stated(strings.Fields(c.names), c.row)})
		switch {
		case c.reason != "":
			if reasonOf(t, err) != c.reason || !strings.Contains(err.Error(), c.detail) || strings.Contains(err.Error(), "secret") {
				t.Errorf("%s: %v, want %s %q", name, err, c.reason, c.detail)
			}
		case err != nil:
			t.Errorf("%s: %v", name, err)
		default:
			if diff := cmp.Diff(c.want, plan.Claim); diff != "" {
				t.Errorf("%s: (-want +got)\n%s", name, diff)
			}
		}
	}
}

// TestAskedCurve: an engine may state a curve, by its parameter or as text.
func TestAskedCurve(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{"rho": "0.5", "mu": "0.268", "curve": "(0.5,0.004) (1,1e-5)"} {
		v := rewrite.Stated([]string{name}, []*string{&text})
		if v.Fault != "" || v.None || v.Curve == "" || v.Number <= 0 && v.Delta <= 0 || !strings.Contains(string(v.Curve), text[:3]) {
			t.Errorf("%s: %+v", name, v)
		}
	}
}

// TestAskedWithoutCopies: the engine is asked about the statement on a copy, or about the client's if it has a copy of
// its own.
func TestAskedWithoutCopies(t *testing.T) {
	t.Parallel()
	o := options()
	o.Claims.Ask = true
	if _, err := rewrite.New(o); err == nil || !strings.Contains(err.Error(), "Neighbours") {
		t.Errorf("error %v", err)
	}
	o.Neighbours, o.OwnEngines = []string{"d0"}, true
	const sql = "SELECT count(*) FROM users"
	_, err := newRewriter(t, o).Analyze(capture.Query{SQL: sql, Database: "shop"})
	var refusal *rewrite.UnsupportedError
	if !errors.As(err, &refusal) || refusal.Question() == nil || refusal.Question().SQL != sql {
		t.Errorf("error %v", err)
	}
}
