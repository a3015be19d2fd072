package tracker_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dpwatch/dpwatch/proxy/internal/tracker"
)

func (s *script) gap() *script {
	s.client = append(s.client, tracker.AppendGap(nil))
	s.server = append(s.server, tracker.AppendGap(nil))
	return s
}

// TestGap: wherever a gap begins, messages after it are paired correctly, prepared statements are discarded, and settings
// are uncertain until the client discards them.
func TestGap(t *testing.T) {
	t.Parallel()
	before := map[string]func(*script){
		"between queries":  func(s *script) { s.run1("SELECT 1", "SELECT 1", 'I') },
		"unanswered query": func(s *script) { s.query("SELECT 1") },
		"answered by half": func(s *script) { s.query("SELECT 1; SELECT 2").complete("SELECT 1") },
		"more queries": func(s *script) {
			s.query("SELECT 1").query("SELECT 2").query("SELECT 3").complete("SELECT 1").ready('I')
		},
		"answer without question": func(s *script) { s.run1("SELECT 1", "SELECT 1", 'I').complete("SELECT 1").ready('I') },
		"within a COPY":           func(s *script) { s.query("COPY t FROM STDIN").back('G', "") },
		"end of a COPY":           func(s *script) { s.query("COPY t FROM STDIN").back('G', "").complete("COPY 1").ready('I') },
		"within a pipeline":       func(s *script) { s.parse("s", "SELECT 1").bind("", "s").execute("").back('1', "") },
		"skipping after an error": func(s *script) { s.parse("s", "SELEC").bind("", "s").fail() },
		"within a transaction":    func(s *script) { s.run1("BEGIN", "BEGIN", 'T').run1("SET LOCAL dp.epsilon = 1", "SET", 'T') },
	}
	for name, first := range before {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScript()
			s.parse("old", "SELECT 'old'").back('1', "").sync().ready('I')
			first(s)
			s.gap()
			s.run1("SELECT 'simple'", "SELECT 1", 'I')
			s.bind("", "old").execute("").sync().back('2', "").complete("SELECT 1").ready('I')
			s.parse("new", "SELECT 'new'").bind("", "new").execute("").sync().back('1', "").back('2', "").complete("SELECT 1").ready('I')
			s.run1("DISCARD ALL", "DISCARD ALL", 'I').run1("SELECT 'certain'", "SELECT 1", 'I')
			r := s.run(t)
			var behind []string
			for _, q := range r.Queries {
				switch q.SQL {
				case "SELECT 'simple'", "SELECT 'new'", "DISCARD ALL":
					behind = append(behind, q.SQL)
					if !q.SettingsUncertain {
						t.Errorf("%s: settings are certain", q.SQL)
					}
				case "SELECT 'certain'":
					behind = append(behind, q.SQL)
					if q.SettingsUncertain {
						t.Error("settings are uncertain after DISCARD ALL")
					}
				}
			}
			if diff := cmp.Diff([]string{"SELECT 'simple'", "SELECT 'new'", "DISCARD ALL", "SELECT 'certain'"}, behind); diff != "" {
				t.Errorf("captured behind the gap: %s", diff)
			}
			counts := r.Counts
			if counts.Off[tracker.OffOverflow] != 1 || counts.Off[tracker.OffPairing] != 0 || counts.Skipped[tracker.UnknownStatement] != 1 {
				t.Errorf("counts %+v", counts)
			}
		})
	}
}
