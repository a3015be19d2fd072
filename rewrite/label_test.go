package rewrite_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/pg/catalog"
	"github.com/dpwatch/dpwatch/rewrite"
	"github.com/dpwatch/dpwatch/rewrite/reasons"
)

// The claims of SECURITY LABELs: masking rules with a declared DP function, on the columns of the tables that a query
// reads.
func TestClaimLabels(t *testing.T) {
	t.Parallel()
	table := func(name string) rewrite.Table { return rewrite.Table{Schema: "public", Name: name} }
	column := func(table rewrite.Table, column, text string) catalog.Label {
		return catalog.Label{Provider: "anon", Table: table, Column: column, Text: text}
	}
	role := func(name, text string) catalog.Label { return catalog.Label{Provider: "anon", Role: name, Text: text} }
	age := column(table("users"), "age", "MASKED WITH FUNCTION dp.noisy(age, 0.5, 1e-6, 0, 100)")
	income := column(table("users"), "income", "masked  with\nfunction dp.noisy(income, 2, 1e-6, 0, 1000)")
	ageClaim := &rewrite.Claim{Epsilon: 0.5, Delta: 1e-6, Source: "label", Rule: "public.users.age"}
	masked := []catalog.Label{age, role("alice", "MASKED"), role("bob", "TRUSTED")}
	byDefault := &rewrite.Claim{Epsilon: 7}
	const plain = "SELECT count(*) FROM users"
	for name, c := range map[string]struct {
		labels   []catalog.Label
		rules    rewrite.ClaimRules
		sql      string // "" = plain
		settings map[string]string
		user     string
		unsure   bool
		want     *rewrite.Claim
		ignored  int // claims that were not accepted
		refused  rewrite.Reason
	}{
		"a masking rule":           {labels: []catalog.Label{age}, want: ageClaim},
		"another provider":         {labels: []catalog.Label{{Provider: "other", Table: age.Table, Column: "age", Text: age.Text}}},
		"another table":            {labels: []catalog.Label{age}, sql: "SELECT count(*) FROM transactions"},
		"no masking rule":          {labels: []catalog.Label{column(table("users"), "age", "dp.noisy(age, 0.5)"), column(table("users"), "age", "MASKED WITH VALUE 0")}},
		"no DP function":           {labels: []catalog.Label{column(table("users"), "age", "MASKED WITH FUNCTION anon.random_int(0.5)")}},
		"the function elsewhere":   {labels: []catalog.Label{column(table("users"), "age", "MASKED WITH FUNCTION other.noisy(age, 0.5)")}},
		"a schema is not required": {labels: []catalog.Label{column(table("users"), "age", "MASKED WITH FUNCTION anon.anon_count(0.5)")}, want: &rewrite.Claim{Epsilon: 0.5, Source: "label", Rule: "public.users.age"}},
		"no epsilon":               {labels: []catalog.Label{column(table("users"), "age", "MASKED WITH FUNCTION dp.noisy(age)")}},
		"no constant":              {labels: []catalog.Label{column(table("users"), "age", "MASKED WITH FUNCTION dp.noisy(age, income)")}, refused: reasons.BadClaim},
		"a negative epsilon":       {labels: []catalog.Label{column(table("users"), "age", "MASKED WITH FUNCTION dp.noisy(age, -1)")}, refused: reasons.BadClaim},
		"a syntax error":           {labels: []catalog.Label{column(table("users"), "age", "MASKED WITH FUNCTION dp.noisy(")}, refused: reasons.BadClaim},
		"two statements":           {labels: []catalog.Label{column(table("users"), "age", "MASKED WITH FUNCTION dp.noisy(1, 2); SELECT 1")}, refused: reasons.BadClaim},
		"two columns add up":       {labels: []catalog.Label{age, income}, want: &rewrite.Claim{Epsilon: 2.5, Delta: 2e-6, Source: "label", Rule: "public.users.age,public.users.income"}},
		"two columns share":        {labels: []catalog.Label{age, income}, rules: rewrite.ClaimRules{Combine: "share"}, want: &rewrite.Claim{Epsilon: 2, Delta: 1e-6, Source: "label", Rule: "public.users.age,public.users.income"}},
		"through a view":           {labels: []catalog.Label{age}, sql: "SELECT count(*) FROM seen", want: ageClaim},
		"a label of a child":       {labels: []catalog.Label{column(table("staff"), "age", "MASKED WITH FUNCTION dp.noisy(age, 9)")}},
		"before rule and default":  {labels: []catalog.Label{age}, rules: rewrite.ClaimRules{Default: byDefault, Rules: []rewrite.Rule{{Name: "r", Epsilon: 3}}}, want: ageClaim},
		"after an argument":        {labels: []catalog.Label{age}, sql: "SELECT dp.noisy(count(*), 0.1) FROM users", want: &rewrite.Claim{Epsilon: 0.1, Delta: 1e-6, Source: "argument", Rule: "dp.noisy"}},
		"a bad label, an argument": {labels: []catalog.Label{column(table("users"), "age", "MASKED WITH FUNCTION dp.noisy(age, -1)")}, sql: "SELECT dp.noisy(count(*), 0.1) FROM users", want: &rewrite.Claim{Epsilon: 0.1, Source: "argument", Rule: "dp.noisy"}},
		"a setting lowers it":      {labels: []catalog.Label{age}, settings: map[string]string{"dp.epsilon": "0.25"}, want: &rewrite.Claim{Epsilon: 0.25, Delta: 1e-6, Source: "setting", Rule: "dp.epsilon"}},
		"a setting cannot raise":   {labels: []catalog.Label{age}, settings: map[string]string{"dp.epsilon": "5"}, want: ageClaim, ignored: 1},
		"a comment cannot raise":   {labels: []catalog.Label{age}, sql: plain + " /*dp_epsilon='5'*/", want: ageClaim, ignored: 1},
		"a masked role":            {labels: masked, user: "alice", want: ageClaim},
		"a role without mask":      {labels: masked, user: "bob"},
		"SET ROLE to it":           {labels: masked, user: "bob", settings: map[string]string{"role": "alice"}, want: ageClaim},
		"an unknown role":          {labels: masked, user: "alice", sql: "SELECT count(*) FROM public.users", unsure: true, refused: reasons.SettingsUncertain},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := options()
			c.rules.Signatures, c.rules.LabelProviders = o.Claims.Signatures, []string{"anon"}
			o.Claims = c.rules
			o.Protected = append(o.Protected, table("seen"))
			o.Source = labelled(c.labels, o)
			q := capture.Query{SQL: plain, User: c.user, Database: "shop", Settings: map[string]string{"search_path": "public"}}
			if c.unsure {
				q.Doubt.Names = []string{"role"}
			}
			if c.sql != "" {
				q.SQL = c.sql
			}
			maps.Copy(q.Settings, c.settings)
			plan, err := newRewriter(t, o).Analyze(q)
			if c.refused != "" {
				if got := reasonOf(t, err); got != c.refused {
					t.Errorf("refused as %s, want %s: %v", got, c.refused, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, plan.Claim); diff != "" || len(plan.Ignored) != c.ignored {
				t.Errorf("%d ignored, want %d; (-want +got):\n%s", len(plan.Ignored), c.ignored, diff)
			}
		})
	}
	// A replay must read masked values as well.
	onCopies := func(text string) []catalog.Label {
		var list []catalog.Label
		for _, schema := range []string{"d0", "d1"} {
			list = append(list, column(rewrite.Table{Schema: schema, Name: "users"}, "age", text))
		}
		return list
	}
	for name, c := range map[string]struct {
		copies  []catalog.Label
		user    string
		unsure  bool
		refused bool
	}{
		"the same labels":         {onCopies(age.Text), "alice", false, false},
		"no label":                {nil, "alice", false, true},
		"no label on one of them": {onCopies(age.Text)[:1], "alice", false, true},
		"another rule":            {onCopies("MASKED WITH VALUE 0"), "alice", false, true},
		"a role without mask":     {nil, "bob", false, false},
		"an unknown role":         {nil, "bob", true, true},
	} {
		o := options()
		o.Protected, o.Public, o.Others, o.Claims.LabelProviders = o.Protected[:1], nil, nil, []string{"anon"}
		o.Source, o.Neighbours = labelled(masked, o), []string{"d0", "d1"}
		o.Shadow = &catalog.Catalog{Database: "shadow", Schemas: o.Neighbours, Labels: c.copies}
		for _, schema := range o.Neighbours {
			o.Shadow.Relations = append(o.Shadow.Relations, catalog.Relation{Table: rewrite.Table{Schema: schema, Name: "users"}, Kind: catalog.KindTable})
		}
		q := capture.Query{SQL: "SELECT count(*) FROM public.users", User: c.user, Database: "shop", Settings: map[string]string{"search_path": "public"}}
		if c.unsure {
			q.Doubt.Names = []string{"role"}
		}
		o.Source.Relations = o.Source.Relations[:1] // users
		o.Source.Relations[0].Reads = nil
		_, err := newRewriter(t, o).Analyze(q)
		if (err != nil) != c.refused || err != nil && reasonOf(t, err) != reasons.NoCopy {
			t.Errorf("%s: %v, refused: want %v", name, err, c.refused)
		}
	}
	// Without a provider in the options, labels claim nothing.
	o := options()
	o.Source = labelled([]catalog.Label{age}, o)
	plan, err := newRewriter(t, o).Analyze(capture.Query{SQL: plain, Database: "shop", Settings: map[string]string{"search_path": "public"}})
	if err != nil || plan.Claim != nil {
		t.Errorf("without providers: %+v, %v", plan, err)
	}
}

// labelled returns a catalog with the tables of o, a view seen over users, a child of users, the DP functions, and
// labels.
func labelled(labels []catalog.Label, o rewrite.Options) *catalog.Catalog {
	c := &catalog.Catalog{Database: "shop", Schemas: []string{"public", "app", "ref", "dp"}, Labels: labels}
	users, staff := rewrite.Table{Schema: "public", Name: "users"}, rewrite.Table{Schema: "public", Name: "staff"}
	for _, t := range slices.Concat(o.Protected, o.Public) {
		r := catalog.Relation{Table: t, Kind: catalog.KindTable}
		switch t {
		case users:
			r.Reads = []rewrite.Table{staff}
		case rewrite.Table{Schema: "public", Name: "seen"}:
			r.Kind, r.Reads, r.Definition = catalog.KindView, []rewrite.Table{users}, " SELECT users.age FROM public.users;"
		}
		c.Relations = append(c.Relations, r)
	}
	c.Relations = append(c.Relations, catalog.Relation{Table: staff, Kind: catalog.KindTable})
	c.Functions = []catalog.Function{{Schema: "dp", Name: "noisy", Kind: catalog.KindFunction, Arguments: "n double precision, epsilon double precision", Result: "double precision", Volatility: "volatile", Language: "c"}}
	return c
}
