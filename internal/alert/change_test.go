package alert_test

import (
	"strings"
	"testing"
	"time"

	"github.com/dpwatch/dpwatch/internal/finding"
)

// TestChange: a message about a violation says which functions changed how long before, and what to do.
func TestChange(t *testing.T) {
	t.Parallel()
	f := leak()
	f.Change = &finding.Change{At: at.Add(-7 * time.Second), Functions: []string{"public.noisy"}, Label: "v42"}
	m := plain.Message(f, at)
	for _, part := range []string{"function public.noisy changed 7s before", "v42", "claims 0.5"} {
		if !strings.Contains(m.Title, part) {
			t.Errorf("no %q in %q", part, m.Title)
		}
	}
	if !strings.HasPrefix(m.Action, "Compare the changed function") || m.Change == nil {
		t.Errorf("action %q, change %+v", m.Action, m.Change)
	}
	f.Status = finding.Resolved
	if m := plain.Message(f, at); m.Action != "" || m.Change != nil || m.Title != "a privacy violation is resolved" {
		t.Errorf("the end: %+v", m)
	}
}
