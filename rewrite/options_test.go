package rewrite_test

import (
	"math"
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/rewrite"
)

func TestNewFaults(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*rewrite.Options)
		want   string
	}{
		"nothing protected": {func(o *rewrite.Options) { o.Protected = nil }, "no protected table"},
		"no schema":         {func(o *rewrite.Options) { o.Protected[0].Schema = "" }, "schema: is empty"},
		"no name":           {func(o *rewrite.Options) { o.Public[0].Name = "" }, "name: is empty"},
		"long name":         {func(o *rewrite.Options) { o.Protected[0].Name = strings.Repeat("x", 64) }, "longer than 63 bytes"},
		"system schema":     {func(o *rewrite.Options) { o.Protected[0].Schema = "pg_catalog" }, "system schema"},
		"catalog-like name": {func(o *rewrite.Options) { o.Protected[0].Name = "pg_class" }, "shadowed by a system catalog"},
		"two of one name": {func(o *rewrite.Options) {
			o.Protected = append(o.Protected, rewrite.Table{Schema: "old", Name: "users"})
		}, "have one name"},
		"protected and public":     {func(o *rewrite.Options) { o.Public = append(o.Public, o.Protected[0]) }, "listed as protected and as public"},
		"allowed function":         {func(o *rewrite.Options) { o.AllowFunctions = []string{"a.b.c"} }, `allowed function "a.b.c"`},
		"signature":                {func(o *rewrite.Options) { o.Claims.Signatures[0].Function = "" }, "signature function"},
		"combine":                  {func(o *rewrite.Options) { o.Claims.Combine = "max" }, `combine "max"`},
		"rule's epsilon":           {func(o *rewrite.Options) { o.Claims.Rules = []rewrite.Rule{{Name: "r", Epsilon: -1}} }, "claim rule 1 (r): epsilon is negative"},
		"rule's pattern":           {func(o *rewrite.Options) { o.Claims.Rules = []rewrite.Rule{{Pattern: "("}} }, "missing closing"},
		"rule's table":             {func(o *rewrite.Options) { o.Claims.Rules = []rewrite.Rule{{Table: o.Public[0]}} }, "is not protected"},
		"default's delta":          {func(o *rewrite.Options) { o.Claims.Default = &rewrite.Claim{Delta: math.NaN()} }, "default claim: delta"},
		"negative limit":           {func(o *rewrite.Options) { o.MaxBytes = -1 }, "must not be negative"},
		"all faults, not only one": {func(o *rewrite.Options) { o.MaxBytes, o.Claims.Combine = -1, "x" }, "combine \"x\": want add or share\nMaxBytes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := options()
			c.change(&o)
			r, err := rewrite.New(o)
			if err == nil || r != nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
}

// TestSearchPathValues reads values of search_path as the server does.
func TestSearchPathValues(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		value string
		want  string // the path, joined with |; "refused" = not a path
	}{
		"one":                 {"public", "public"},
		"folded":              {"Public, APP", "public|app"},
		"quoted keeps case":   {`public, "APP"`, "public|APP"},
		"quote in quotes":     {`public,"a""b"`, `public|a"b`},
		"comma in quotes":     {`public, "a, b"`, "public|a, b"},
		"spaces":              {" public\t,\n app ", "public|app"},
		"user":                {`"$user", public`, "alice|public"},
		"not ASCII":           {"public, Größe", "public|größe"},
		"long names are cut":  {"public, " + strings.Repeat("x", 70), "public|" + strings.Repeat("x", 63)},
		"cut between runes":   {"public, " + strings.Repeat("x", 62) + "ü", "public|" + strings.Repeat("x", 62)},
		"open quote":          {`public, "app`, "refused"},
		"trailing comma":      {"public,", "refused"},
		"two words":           {"public app", "refused"},
		"text after a quote":  {`"public"x`, "refused"},
		"default, a keyword":  {"DEFAULT", "refused"},
		"quote within a word": {`pub"lic`, "refused"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plan, err := newRewriter(t, options()).Analyze(capture.Query{
				SQL: "SELECT count(*) FROM users", User: "alice", Database: "shop", Settings: map[string]string{"search_path": c.value},
			})
			if c.want == "refused" {
				if err == nil || reasonOf(t, err) != rewrite.ReasonSettingsUncertain {
					t.Errorf("%v, want %s", err, rewrite.ReasonSettingsUncertain)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			// The server folds only ASCII; Go's strings.ToLower would fold more.
			if got := strings.Join(plan.SearchPath, "|"); got != c.want {
				t.Errorf("path %q, want %q", got, c.want)
			}
		})
	}
}
