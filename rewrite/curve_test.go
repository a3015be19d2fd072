package rewrite_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/curve"
	"github.com/dpwatch/dpwatch/rewrite"
)

const (
	plainSelect = "SELECT count(*) FROM users"
	oneCall     = "SELECT anon_count(id, 0.5) FROM users"
	twoCalls    = "SELECT anon_count(id, 0.3), anon_count(id, 0.4) FROM users"
)

// in returns rules in which the declared functions have an argument in a unit.
func in(unit string) func(*rewrite.Options) {
	return func(o *rewrite.Options) {
		for i := range o.Claims.Signatures {
			o.Claims.Signatures[i].Unit = unit
		}
	}
}

// bare declares a function without arguments for claims.
func bare(o *rewrite.Options) {
	o.Claims.Signatures = append(o.Claims.Signatures, rewrite.Signature{Function: "dp_count"})
}

func TestCurveClaims(t *testing.T) {
	t.Parallel()
	comment := func(text string) string { return plainSelect + " /*dp_curve='" + text + "'*/" }
	setting := func(text string) map[string]string { return map[string]string{"dp.epsilon": text} }
	ruled := func(c curve.Curve) func(*rewrite.Options) {
		return func(o *rewrite.Options) { o.Claims.Rules = []rewrite.Rule{{Name: "ruled", Curve: c}} }
	}
	for name, c := range map[string]struct {
		change   func(*rewrite.Options)
		sql      string
		settings map[string]string
		want     curve.Curve
		source   string
		ignored  int
	}{
		"comment with mu":           {sql: comment("mu=0.268"), want: "mu=0.268", source: "comment"},
		"comment with rho":          {sql: comment("rho = .5"), want: "rho=0.5", source: "comment"},
		"comment with a list":       {sql: comment("(1,1e-5) (0.5,0.004)"), want: "(0.5,0.004) (1,1e-05)", source: "comment"},
		"comment, encoded":          {sql: comment("mu%3D0.268"), want: "mu=0.268", source: "comment"},
		"setting":                   {sql: plainSelect, settings: setting("mu=0.3"), want: "mu=0.3", source: "setting"},
		"setting, for each call":    {change: bare, sql: "SELECT dp_count(id), dp_count(id) FROM users", settings: setting("rho=0.5"), want: "rho=1", source: "setting"},
		"rule":                      {change: ruled("rho=0.1"), sql: plainSelect, want: "rho=0.1", source: "rule"},
		"default":                   {change: func(o *rewrite.Options) { o.Claims.Default = &rewrite.Claim{Curve: "mu=2"} }, sql: plainSelect, want: "mu=2", source: "default"},
		"argument in mu":            {change: in("mu"), sql: oneCall, want: "mu=0.5", source: "argument"},
		"arguments in mu, together": {change: in("mu"), sql: twoCalls, want: "mu=0.5", source: "argument"},
		"arguments in rho":          {change: in("rho"), sql: twoCalls, want: "rho=0.7", source: "argument"},
		"arguments that share": {
			change: func(o *rewrite.Options) { in("mu")(o); o.Claims.Combine = "share" }, sql: twoCalls, want: "mu=0.4", source: "argument",
		},
		"a client may lower the claim of a rule": {change: ruled("mu=0.5"), sql: comment("mu=0.3"), want: "mu=0.3", source: "comment"},
		"and not raise it":                       {change: ruled("mu=0.3"), sql: comment("mu=0.5"), want: "mu=0.3", source: "rule", ignored: 1},
		"nor by another unit":                    {change: ruled("mu=0.3"), sql: comment("rho=0.5"), want: "mu=0.3", source: "rule", ignored: 1},
		"nor by one point":                       {change: ruled("mu=0.3"), sql: plainSelect + " /*dp_epsilon='1',dp_delta='0.1'*/", want: "mu=0.3", source: "rule", ignored: 1},
		"pure epsilon lowers mu":                 {change: ruled("mu=3"), sql: plainSelect + " /*dp_epsilon='0.1'*/", want: "", source: "comment"},
		"a curve lowers epsilon": {
			change: func(o *rewrite.Options) { o.Claims.Default = &rewrite.Claim{Epsilon: 2, Delta: 1e-3} }, sql: comment("mu=0.268"), want: "mu=0.268", source: "comment",
		},
		"a curve raises epsilon": {
			change: func(o *rewrite.Options) { o.Claims.Default = &rewrite.Claim{Epsilon: 1} }, sql: comment("mu=0.268"), want: "", source: "default", ignored: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := options()
			if c.change != nil {
				c.change(&o)
			}
			plan, err := newRewriter(t, o).Analyze(capture.Query{SQL: c.sql, Database: "shop", Settings: c.settings})
			if err != nil {
				t.Fatal(err)
			}
			if plan.Claim == nil || plan.Claim.Curve != c.want || plan.Claim.Source != c.source || len(plan.Ignored) != c.ignored {
				t.Fatalf("claim %+v, ignored %+v; want %q of the %s, %d ignored", plan.Claim, plan.Ignored, c.want, c.source, c.ignored)
			}
			if p := plan.Claim; p.Curve != "" {
				if diff := cmp.Diff(p.Curve.Headline(), curve.Point{Epsilon: p.Epsilon, Delta: p.Delta}); diff != "" {
					t.Error("the claim's epsilon and delta are not the headline:", diff)
				}
			}
		})
	}
}

func TestRefusedCurveClaims(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change   func(*rewrite.Options)
		sql      string
		settings map[string]string
		want     string
	}{
		"no curve":             {sql: plainSelect + " /*dp_curve='0.5'*/", want: "dp_curve in a comment is no curve: write mu=NUMBER"},
		"beside epsilon":       {sql: plainSelect + " /*dp_curve='mu=1',dp_epsilon='1'*/", want: "give one of the two claims"},
		"two curves":           {sql: plainSelect + " /*dp_curve='mu=1'*/ /*dp_curve='mu=2'*/", want: "different values of dp_curve"},
		"not a pair":           {sql: plainSelect + " /* dp_curve=mu */", want: "is not of the form"},
		"setting":              {sql: plainSelect, settings: map[string]string{"dp.epsilon": "mu=-1"}, want: "setting dp.epsilon mu must be a number from"},
		"list for two calls":   {change: bare, sql: "SELECT dp_count(id), dp_count(id) FROM users", settings: map[string]string{"dp.epsilon": "(1,0.1)"}, want: "points of a list do not add up"},
		"argument, a list":     {sql: "SELECT anon_count(id, '(0.5,0.004) (1,1e-5)') FROM users", want: "epsilon is a curve or a list, and an argument of a function is one number"},
		"argument, a curve":    {sql: "SELECT anon_count(id, 'mu=0.5') FROM users", want: "epsilon is a curve or a list"},
		"argument, an array":   {sql: "SELECT anon_count(id, ARRAY[0.5, 1]) FROM users", want: "epsilon is a curve or a list"},
		"argument, a row":      {sql: "SELECT anon_count(id, (0.5, 1)) FROM users", want: "epsilon is a curve or a list"},
		"argument, array text": {sql: "SELECT anon_count(id, '{0.5,1}') FROM users", want: "epsilon is a curve or a list"},
		"argument beyond":      {change: in("mu"), sql: "SELECT anon_count(id, 31) FROM users", want: "mu must be a number from"},
		"sum beyond":           {change: in("mu"), sql: "SELECT anon_count(id, 29), anon_count(id, 29) FROM users", want: "their sum is too large"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := options()
			if c.change != nil {
				c.change(&o)
			}
			_, err := newRewriter(t, o).Analyze(capture.Query{SQL: c.sql, Database: "shop", Settings: c.settings})
			var refusal *rewrite.UnsupportedError
			if !errors.As(err, &refusal) || refusal.Reason != rewrite.Reason("bad_claim") || !strings.Contains(refusal.Detail, c.want) {
				t.Errorf("%v; want %q", err, c.want)
			}
		})
	}
}

// TestCurveIsPartOfTheKey: another curve is another audit, also with the same headline.
func TestCurveIsPartOfTheKey(t *testing.T) {
	t.Parallel()
	keys := map[string]string{}
	r := newRewriter(t, options())
	headline := curve.Curve("mu=0.268").Headline()
	for _, comment := range []string{"dp_curve='mu=0.268'", "dp_curve='mu=0.269'", "dp_curve='" + string(curve.Of(headline.Epsilon, headline.Delta)) + "'"} {
		plan, err := r.Analyze(capture.Query{SQL: plainSelect + " /*" + comment + "*/", Database: "shop"})
		if err != nil {
			t.Fatal(err)
		}
		if other, taken := keys[plan.Key]; taken {
			t.Errorf("%s and %s have one key", comment, other)
		}
		keys[plan.Key] = comment
	}
}

// TestCurvesOfASequence: mu composes to the root of the sum of squares; a list composes by its headline alone.
func TestCurvesOfASequence(t *testing.T) {
	t.Parallel()
	list := rewrite.Claim{Epsilon: 1, Delta: 1e-5, Curve: "(0.5,0.004) (1,1e-05)"}
	three, four := rewrite.Claim{Curve: "mu=3"}, rewrite.Claim{Curve: "mu=4"}
	none := &rewrite.Claim{Source: rewrite.SourceSum}
	if got := rewrite.Compose(rewrite.Compose(none, &three), &four); got.Curve != "mu=5" || got.Source != rewrite.SourceSum {
		t.Errorf("%+v", got)
	}
	if got := rewrite.Compose(rewrite.Compose(none, &list), &list); got.Curve != "" || got.Epsilon != 2 || got.Delta != 2e-5 {
		t.Errorf("%+v", got)
	}
	if got := rewrite.Compose(&rewrite.Claim{Curve: "mu=3", Source: rewrite.SourceMax}, &four); got.Curve != "mu=4" {
		t.Errorf("%+v", got)
	}
}
