package status_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dpwatch/dpwatch/analysis"
	"github.com/dpwatch/dpwatch/internal/app/status"
	"github.com/dpwatch/dpwatch/internal/audit/view"
	"github.com/dpwatch/dpwatch/internal/withheld"
)

const secret = "SECRET"

// fill sets every text in a value, and makes every pointer, list and map hold one element.
func fill(v reflect.Value, depth int) {
	if depth > 12 {
		return
	}
	if text, ok := v.Addr().Interface().(*withheld.Text); ok {
		*text = withheld.Public(secret) // as an auditor with log.reveal: values sends it
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(secret)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), depth+1)
	case reflect.Slice:
		if v.Type().Elem().Kind() != reflect.Uint8 {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
			fill(v.Index(0), depth+1)
		}
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, depth+1)
		fill(value, depth+1)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() {
				fill(v.Field(i), depth+1)
			}
		}
	}
}

// secrets returns the paths of the texts that hold the secret.
func secrets(v any, path string) (all []string) {
	switch v := v.(type) {
	case string:
		if strings.Contains(v, secret) {
			all = append(all, path)
		}
	case []any:
		for _, one := range v {
			all = append(all, secrets(one, path)...)
		}
	case map[string]any:
		for name, one := range v {
			all = append(all, secrets(one, strings.TrimPrefix(path+"."+strings.ReplaceAll(name, secret, "*"), "."))...)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// TestWithhold: of all texts in a status, exactly these are left. A new text must be classified here: it is left if it
// never has a value of a row, whatever log.reveal is.
func TestWithhold(t *testing.T) {
	t.Parallel()
	var s view.Status
	fill(reflect.ValueOf(&s).Elem(), 0)
	for _, verdict := range []analysis.Verdict{analysis.Violation, analysis.Inconclusive} {
		for _, trouble := range []string{secret, ""} {
			s.Audits[0].Trouble, s.Audits[0].Report.Verdict = trouble, verdict
			text, err := json.Marshal(&s)
			if err != nil {
				t.Fatal(err)
			}
			public, err := status.Withhold(text)
			if err != nil {
				t.Fatal(err)
			}
			var tree any
			if err := json.Unmarshal(public, &tree); err != nil {
				t.Fatal(err)
			}
			want := slices.Clone(harmless)
			if verdict == analysis.Violation && trouble == "" {
				want = append(want, "audits.report.reason")
			}
			slices.Sort(want)
			if d := cmp.Diff(want, secrets(tree, "")); d != "" {
				t.Errorf("%s, trouble %q (-want +got):\n%s", verdict, trouble, d)
			}
		}
	}
}

var harmless = []string{
	"audits.report.claimed.curve", "audits.report.curve_lower", "audits.violation.claim_curve", "audits.resolved.claim_curve", // numbers of a claim
	"records.claim_curve", "records.violation.claim_curve",
	"accepted.*.operator", "accepted.*.reason", "alerts.undelivered.receiver",
	"audits.resolved.engine_change.functions", "audits.resolved.engine_change.label", // names of functions
	"audits.violation.engine_change.functions", "audits.violation.engine_change.label",
	"records.violation.engine_change.functions", "records.violation.engine_change.label", "records.violation.engine_epoch",
	"records.violation.first_engine_epoch", "records.violation.neighbour",
	"audits.accepted.operator", "audits.accepted.reason", "audits.application_name", "audits.assumed", "audits.claim_rule", "audits.database", "audits.destinations",
	"audits.engine_epoch", "audits.fingerprint", "audits.functions_differ", "audits.hoisting.reason", "audits.id", "audits.key", "audits.neighbour",
	"audits.neighbours.schema", "audits.neighbours.verdict", "audits.previous_verdict", "audits.report.claimed.source",
	"audits.report.confirmation.state", "audits.report.control.state", "audits.report.deterministic.description", "audits.report.deterministic.kind",
	"audits.report.finding.causes.basis", "audits.report.finding.causes.code", "audits.report.finding.causes.name", "audits.report.finding.causes.page",
	"audits.report.finding.how_bad.basis", "audits.report.finding.how_bad.text", "audits.report.finding.what.basis", "audits.report.measurement.state", "audits.report.reason_code",
	"audits.report.windows.column", "audits.report.windows.kind", "audits.report.windows.what",
	"audits.resolved.engine_epoch", "audits.resolved.first_engine_epoch", "audits.resolved.neighbour", "audits.resolved.resolved_by_engine_epoch",
	"audits.route", "audits.state", "audits.summary", "audits.user", "audits.verdict", "audits.violation.engine_epoch",
	"audits.violation.first_engine_epoch", "audits.violation.neighbour", "audits.waiting_for.reason", "audits.worker", "ledger.holder.configuration",
	"false_alarms.off", "ledger.holder.host", "ledger.recorders.configuration", "ledger.recorders.host", "names", "pace.default", "pace.held", "pace.warning", "privacy_budgets.name",
	"records.accepted.operator", "records.accepted.reason", "records.database", "records.fingerprint", "records.id", "records.neighbour", "records.route",
	"records.summary", "records.user", "workers.host", "workers.id", "workers.refused", "workers.version",
}
