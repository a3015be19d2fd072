package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/internal/app/records"
)

// checkCoverage checks the coverage of TestRunLedger's statements, in the ledger and at the admin port.
func (s *sidecar) checkCoverage(t *testing.T) {
	t.Helper()
	r := call(t, "", "coverage", "--config", s.config, "-o", "json")
	_, answer := s.get(t, "/api/coverage?since=2h")
	for from, text := range map[string]string{"the ledger": r.stdout, "the admin port": answer} {
		var c records.Coverage
		if err := json.Unmarshal([]byte(text), &c); err != nil {
			t.Fatalf("%s: %v\n%s%s", from, err, text, r.stderr)
		}
		statements, sum := map[records.Class]int64{}, int64(0)
		for _, class := range c.Classes {
			statements[class.Class] = class.Statements
			sum += class.Statements
			parts := int64(0)
			for _, p := range class.Parts {
				parts += p.Statements
			}
			if parts != class.Statements {
				t.Errorf("%s: the parts of class %s have %d statements, the class %d", from, class.Class, parts, class.Statements)
			}
		}
		checkSamples(t, from, c)
		if statements["audited"] != 2 || statements["refused"] != 1 || statements["not_dp"] != 1 || c.Statements != sum || sum != 4 || c.Queries != 2 {
			t.Errorf("%s: %+v; want 4 statements: 2 audited, 1 refused, 1 not a DP query", from, c)
		}
	}
	call(t, "", "coverage", "--config", s.config, "--engine", "nowhere").want(t, exitFailure, `it has no engine "nowhere"; it has: `)
	if text := call(t, "", "coverage", "--config", s.config).stdout; !strings.Contains(text, "\nunknown table, for example:\n") || !strings.Contains(text, "\n    "+refusedSample+"\n    -> relation dpwatch_ledger.audits is neither protected nor public: list it in ") {
		t.Errorf("without a sample:\n%s", text)
	}
	if text := call(t, "", "coverage", "--config", s.config).stdout; !strings.HasPrefix(text, "66.7 % of the statements that may be DP queries are audited, 0.0 % are being audited, 33.3 % are not. Queries that violate their claim: 1.\n") ||
		!strings.Contains(text, "list the table in privacy.protected or privacy.public") {
		t.Errorf("as text:\n%s", text)
	}
}

// refusedSample is the shape of the refused statement of TestRunLedger.
const refusedSample = "SELECT noisy((SELECT count(*) FROM dpwatch_ledger.audits), ?) FROM people"

// checkSamples checks that the refused statement has a sample that names the table and says what to do.
func checkSamples(t *testing.T, from string, c records.Coverage) {
	t.Helper()
	for _, class := range c.Classes {
		for _, p := range class.Parts {
			switch {
			case p.Reason != "unknown_table":
				if len(p.Samples) > 0 {
					t.Errorf("%s: %s has samples: %+v", from, p.Reason, p.Samples)
				}
			case len(p.Samples) != 1:
				t.Errorf("%s: %d samples of %s, want 1", from, len(p.Samples), p.Reason)
			default:
				if x := p.Samples[0]; x.Shape != refusedSample || x.User == "" || x.Text != "" || !strings.Contains(x.Detail, "dpwatch_ledger.audits") || x.Remedy == "" || x.At.IsZero() {
					t.Errorf("%s: sample %+v", from, x)
				}
			}
		}
	}
}
