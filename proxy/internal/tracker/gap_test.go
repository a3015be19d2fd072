package tracker_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/sqltext"
	"github.com/dpwatch/dpwatch/proxy/internal/tracker"
)

func (s *script) gap() *script {
	return s.gapWith(tracker.Gap{}, tracker.Gap{})
}

func (s *script) gapWith(client, server tracker.Gap) *script {
	s.client = append(s.client, tracker.AppendResume(tracker.AppendGap(nil), client))
	s.server = append(s.server, tracker.AppendResume(tracker.AppendGap(nil), server))
	return s
}

// uncertain reports whether a setting, or the meaning of names, is in doubt, apart from what functions do.
func uncertain(q capture.Query) bool {
	return q.Doubt.Has("a.b") || q.Doubt.Has("dp.epsilon") || q.Doubt.Temporary
}

// TestGap: wherever a gap begins, messages after it are paired correctly. Statements prepared before it are still
// known, and settings are certain.
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
			r := s.run(t)
			want := []string{"SELECT 'simple'", "SELECT 'old'", "SELECT 'new'"}
			var behind []string
			for _, q := range r.Queries {
				if slices.Contains(want, q.SQL) {
					behind = append(behind, q.SQL)
					if uncertain(q) {
						t.Errorf("%s: settings are uncertain", q.SQL)
					}
				}
			}
			if diff := cmp.Diff(want, behind); diff != "" {
				t.Errorf("captured behind the gap: %s", diff)
			}
			counts := r.Counts
			if counts.Off[tracker.OffOverflow] != 1 || counts.Off[tracker.OffPairing] != 0 {
				t.Errorf("counts %+v", counts)
			}
		})
	}
}

// TestGapRisk: what the lost messages may have changed is uncertain, and only that.
func TestGapRisk(t *testing.T) {
	t.Parallel()
	bind := func(s *script) *script {
		return s.bind("", "old").execute("").sync().bound("SELECT 1").ready('I')
	}
	for name, c := range map[string]struct {
		before         func(*script)
		client, server sqltext.Risk
		uncertain      bool
		forgotten      bool
	}{
		"nothing":                {},
		"CREATE FUNCTION":        {server: sqltext.TagRisk("CREATE FUNCTION"), uncertain: true},
		"DO with COMMIT":         {client: sqltext.Mentions("DO $$ BEGIN SET a.b = 1; COMMIT; RAISE EXCEPTION 'x'; END $$"), uncertain: true},
		"SET":                    {server: sqltext.TagRisk("SET"), uncertain: true},
		"set_config":             {client: sqltext.Mentions("SELECT Set_Config($1)"), uncertain: true},
		"temporary table":        {client: sqltext.Mentions("CREATE TEMP TABLE t()"), uncertain: true},
		"DEALLOCATE":             {server: sqltext.TagRisk("DEALLOCATE ALL"), forgotten: true},
		"CREATE VIEW":            {server: sqltext.TagRisk("CREATE VIEW")},
		"CREATE VIEW with temps": {before: func(s *script) { s.run1("CREATE TEMP TABLE x()", "CREATE TABLE", 'I') }, server: sqltext.TagRisk("CREATE VIEW"), uncertain: true},
		"uncommitted SET":        {before: func(s *script) { s.run1("BEGIN", "BEGIN", 'T').run1("SET a.b = 1", "SET", 'T') }, uncertain: true},
		"uncommitted SET LOCAL":  {before: func(s *script) { s.run1("BEGIN", "BEGIN", 'T').run1("SET LOCAL a.b = 1", "SET", 'T') }},
		"pending SET":            {before: func(s *script) { s.query("SET a.b = 1") }, server: sqltext.TagRisk("SET"), uncertain: true},
		"pending set_config":     {before: func(s *script) { s.query("SELECT set_config('a', 'b', false)") }, uncertain: true},
		"pending second set_config": {before: func(s *script) {
			s.query("SELECT 1; SELECT pg_catalog.set_config(c, d, false)").complete("SELECT 1")
		}, uncertain: true},
		"pending Close":           {before: func(s *script) { s.close('S', "old") }, forgotten: true},
		"pending function call":   {before: func(s *script) { s.front('F', "") }, uncertain: true},
		"answer of a SET":         {before: func(s *script) { s.complete("SET") }, uncertain: true},
		"prepared set_config":     {before: func(s *script) { s.parse("x", "SELECT set_config($1, $2, $3)").sync().parsed().ready('I') }, uncertain: true},
		"prepared, not committed": {before: func(s *script) { s.parse("x", "BEGIN").sync().parsed().ready('I') }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScript().parse("old", "SELECT 'old'").back('1', "").sync().ready('I')
			if c.before != nil {
				c.before(s)
			}
			s.gapWith(tracker.Gap{Risk: c.client}, tracker.Gap{Risk: c.server})
			r := bind(s.run1("SELECT 1", "SELECT 1", 'I')).run1("DISCARD ALL", "DISCARD ALL", 'I').run1("SELECT 2", "SELECT 1", 'I').run(t)
			behind := map[string]bool{}
			for _, q := range r.Queries {
				behind[q.SQL] = uncertain(q)
			}
			if got, ok := behind["SELECT 1"]; !ok || got != c.uncertain {
				t.Errorf("captured %t, settings uncertain %t; want %t", ok, got, c.uncertain)
			}
			if _, ok := behind["SELECT 'old'"]; ok == c.forgotten || c.forgotten != (r.Counts.Skipped[tracker.UnknownStatement] == 1) {
				t.Errorf("the statement prepared before the gap was captured: %t; skipped %v", ok, r.Counts.Skipped)
			}
			if got, ok := behind["SELECT 2"]; !ok || got {
				t.Errorf("after DISCARD ALL: captured %t, settings uncertain %t", ok, got)
			}
		})
	}
}

// TestPreparedInGap: a statement that was prepared in a gap is counted, and makes nothing uncertain unless its command
// tag or the texts in the gap do.
func TestPreparedInGap(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		risk      sqltext.Risk
		tag       string
		uncertain bool
	}{
		"SELECT":              {tag: "SELECT 1"},
		"SET":                 {tag: "SET", uncertain: true},
		"possibly set_config": {risk: sqltext.RiskSettings, tag: "SELECT 1", uncertain: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newScript().gapWith(tracker.Gap{Risk: c.risk}, tracker.Gap{}).run1("DISCARD ALL", "DISCARD ALL", 'I').
				bind("", "s").execute("").sync().bound(c.tag).ready('I').run1("SELECT 1", "SELECT 1", 'I').run(t)
			if n := len(r.Queries); n != 2 || uncertain(r.Queries[1]) != c.uncertain || r.Counts.Skipped[tracker.UnknownStatement] != 1 {
				t.Errorf("queries %+v, skipped %v; want the last one uncertain: %t", r.Queries, r.Counts.Skipped, c.uncertain)
			}
		})
	}
}
