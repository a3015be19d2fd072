package recognize

import (
	"testing"

	"github.com/dpwatch/dpwatch/internal/capture"
)

// What a session did before a setting became uncertain is named.
func TestExplainDoubt(t *testing.T) {
	t.Parallel()
	calls := func(names ...string) []capture.Calls { return []capture.Calls{{Functions: names}} }
	for _, tc := range []struct {
		doubt          capture.Doubt
		detail, advice string
	}{
		{capture.Doubt{}, "x", "a"},
		{capture.Doubt{Names: []string{"role", "search_path"}}, "x; before, the session may have changed role, search_path", "a; or run SET for that setting, or DISCARD ALL, after that"},
		{capture.Doubt{Calls: calls("g", "f")}, "x; before, the session called f, g", "a; or run SET for that setting, or DISCARD ALL, after that"},
		{capture.Doubt{Calls: calls("a", "b", "c", "d", "e")}, "x; before, the session called a, b, c, d and other functions", "a; or run SET for that setting, or DISCARD ALL, after that"},
		{capture.Doubt{Calls: calls(capture.UnlistedFunctions)}, "x; before, the session called functions", "a; or run SET for that setting, or DISCARD ALL, after that"},
		{
			capture.AnySetting(), "x; before, the session ran code whose changes of settings are not known (a DO block, a procedure, or a statement that was not captured)",
			"a; or run SET for that setting, or DISCARD ALL, after that",
		},
	} {
		if detail, advice := explainDoubt(tc.doubt, "x", "a"); detail != tc.detail || advice != tc.advice {
			t.Errorf("%+v: %q, %q", tc.doubt, detail, advice)
		}
	}
}
