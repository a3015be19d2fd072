package reports

import (
	"strings"
	"testing"
	"time"

	"github.com/dpwatch/dpwatch/config"
	"github.com/dpwatch/dpwatch/internal/report"
	"github.com/dpwatch/dpwatch/internal/report/registrytest"
)

// claim returns an audit with a claim of the engine main.
func claim(verdict string, epsilon, delta float64, curve string) ReportAudit {
	return ReportAudit{Audit: report.Audit{Engine: "main", Verdict: verdict, Epsilon: &epsilon, Delta: &delta, Curve: curve}}
}

// TestClaimed: the variant is that of all claims together, with the largest parameters.
func TestClaimed(t *testing.T) {
	t.Parallel()
	pure, delta, rho, mu := claim("", 1, 0, ""), claim("", .5, 1e-6, ""), claim("", 2, 1e-5, "rho=0.25"), claim("", 2, 1e-5, "mu=0.5")
	for _, tc := range []struct {
		claims  []ReportAudit
		variant string
		want    report.Parameters
		says    string
	}{
		{nil, "", report.Parameters{}, ""},
		{[]ReportAudit{pure, pure}, report.PureDP, report.Parameters{Epsilon: 1}, "of 2 queries: epsilon 1, delta 0."},
		{[]ReportAudit{delta, pure}, report.ApproximateDP, report.Parameters{Epsilon: 1, Delta: 1e-6}, "epsilon 1, delta 1e-06"},
		{[]ReportAudit{rho}, report.ZeroCDP, report.Parameters{Rho: .25}, "rho 0.25"},
		{[]ReportAudit{rho, pure}, report.CustomDP, report.Parameters{Epsilon: 1, Rho: .25}, "epsilon 1, delta 0 rho 0.25"},
		{[]ReportAudit{mu, mu}, report.CustomDP, report.Parameters{}, "the curves mu=0.5."},
	} {
		variant, p, says := claimed(tc.claims)
		if variant != tc.variant || p != tc.want || !strings.Contains(says, tc.says) {
			t.Errorf("%+v: %s, %+v, %s", tc.claims, variant, p, says)
		}
	}
}

// TestDeployment: the record of an engine has its budget, its unit, its functions and its verdicts, and keeps the
// schema; those of several engines are files of their own.
func TestDeployment(t *testing.T) {
	t.Parallel()
	c := config.Config{Budgets: []config.PrivacyBudget{{Name: "analysts", Epsilon: 10, Delta: 1e-6, Period: config.Duration(24 * time.Hour)}}}
	c.Privacy = config.Privacy{Protected: []string{"public.users"}, Unit: &config.Unit{Table: "public.users", Key: []string{"id"}}}
	c.Claims.Functions = []config.Function{{Name: "anon_count"}}
	c.Neighbours.Source, c.Neighbours.Relation = "host=x", "remove"
	r := &Report{
		Created: time.Date(2027, 2, 3, 0, 0, 0, 0, time.UTC), Until: time.Date(2027, 2, 3, 0, 0, 0, 0, time.UTC), Version: "v1",
		Audits: []ReportAudit{claim("violation", 1, 0, ""), claim("no_evidence", .5, 0, ""), claim("untried", .5, 0, "")},
		Errors: []ErrorRate{{Engine: "main", Rule: "family", Alpha: .05}}, configurations: map[string]string{"main": ""}, configs: map[string]config.Config{"main": c},
	}
	r.Audits[1].stored.FirstSeen = time.Date(2027, 1, 31, 0, 0, 0, 0, time.UTC)
	files := r.registry()
	text := strings.Join(strings.Fields(string(files[0].Text())), " ")
	if err := registrytest.Validate(files[0].Text()); err != nil || files[0].Name != "registry.yaml" || len(files) != 1 {
		t.Errorf("%s: %v", files[0].Name, err)
	}
	for _, want := range []string{
		`publication_date: "2027-01-31"`, `variant_name: "Approximate DP"`, "epsilon: 10.0 delta: 1.0e-06", "one row of table public.users (key: id)", "lacks all rows of one unit", "anon_count",
		"The largest claim of one of 3 queries: epsilon 1, delta 0", "Of 3 queries, 1 leak more than they claim, in 1 no evidence", "1 have no conclusion", "in any 24h0m0s", "at most 0.05",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, files[0].Text())
		}
	}
	r.configurations["other"], r.configs["other"] = "", config.Config{}
	if files = r.registry(); len(files) != 2 || files[1].Name != "registry_2.yaml" || registrytest.Validate(files[1].Text()) != nil {
		t.Errorf("of two engines: %d files, %s", len(files), files[1].Text())
	}
}
