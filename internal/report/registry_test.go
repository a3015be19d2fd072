package report_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/dpwatch/dpwatch/internal/report"
	"github.com/dpwatch/dpwatch/internal/report/registrytest"
)

// TestRegistry: a full and an empty record keep the schema; what only people know is marked, and texts come back as
// they were.
func TestRegistry(t *testing.T) {
	t.Parallel()
	long := strings.Repeat(`a "long" text: with # marks, - dashes \ and 'quotes' `, 9)
	full := report.Deployment{
		Engine: `main"`, Since: "2026-01-31", Variant: report.ApproximateDP, Parameters: report.Parameters{Epsilon: 1, Delta: 1e-6}, Meaning: long, Unit: "public.users", Neighbours: "two: texts",
		Mechanisms: "anon_count.", Composition: "zcdp", Apportioning: "by analyst", Audit: long, Report: "Audit", Year: 2026,
	}
	for name, d := range map[string]report.Deployment{
		"full": full, "little": {Engine: "main", Since: "2026-01-31"},
		"rho": {Since: "2026-01-31", Variant: report.ZeroCDP, Parameters: report.Parameters{Rho: .25}}, "custom": {Since: "2026-01-31", Variant: report.CustomDP},
	} {
		if err := registrytest.Validate(d.YAML()); err != nil {
			t.Errorf("%s: %v\n%s", name, err, d.YAML())
		}
		for _, field := range []string{"url_slug", "data_curator_name", "intended_use", "trust_assumptions", "justification"} {
			if !strings.Contains(string(d.YAML()), field+`: "TODO: `) {
				t.Errorf("%s: %s is not left to people\n%s", name, field, d.YAML())
			}
		}
	}
	var read struct {
		Deployment struct {
			Basic struct {
				Name string
			}
			PrivacyLoss struct {
				Unit string                           `yaml:"privacy_unit"`
				P    struct{ Epsilon, Delta float64 } `yaml:"privacy_parameters"`
			} `yaml:"privacy_loss"`
			Implementation struct {
				Additional string `yaml:"additional_information"`
			}
		}
	}
	if err := yaml.Unmarshal(full.YAML(), &read); err != nil {
		t.Fatal(err)
	}
	d := read.Deployment
	if d.Implementation.Additional != strings.TrimSpace(long) || d.PrivacyLoss.Unit != "public.users" || d.PrivacyLoss.P.Delta != 1e-6 || d.PrivacyLoss.P.Epsilon != 1 || !strings.Contains(d.Basic.Name, `main"`) {
		t.Errorf("read as %+v", d)
	}
	wrong := bytes.Replace(full.YAML(), []byte(report.ApproximateDP), []byte("Some DP"), 1)
	if registrytest.Validate(wrong) == nil || registrytest.Validate([]byte("deployment: {}")) == nil || registrytest.Validate(bytes.Replace(full.YAML(), []byte("2026-01-31"), []byte("January"), 1)) == nil {
		t.Error("the schema accepts anything")
	}
}
