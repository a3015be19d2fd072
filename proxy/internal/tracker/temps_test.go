package tracker_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/proxy/internal/tracker"
)

// TestTemporaryDefinitions: a statement that names a temporary relation with expressions on what is protected is
// captured, with the definitions of views; one that names its rows alone is unprotected.
func TestTemporaryDefinitions(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		script *script
		want   []string // the last statements that are captured: SQL; name=definition, ...
	}{
		"view": {
			newScript().run1("CREATE TEMP VIEW tv AS SELECT n FROM users", "CREATE VIEW", 'I').run1("SELECT * FROM tv", "SELECT 1", 'I'),
			[]string{"SELECT * FROM tv; tv=CREATE TEMP VIEW tv AS SELECT n FROM users"},
		},
		"view of a view": {
			newScript().run1("CREATE TEMP VIEW tv AS SELECT n FROM users", "CREATE VIEW", 'I').run1("CREATE VIEW over AS SELECT * FROM tv", "CREATE VIEW", 'I').
				run1("SELECT * FROM over", "SELECT 1", 'I'),
			[]string{"SELECT * FROM over; over=CREATE VIEW over AS SELECT * FROM tv, tv=CREATE TEMP VIEW tv AS SELECT n FROM users"},
		},
		"view of nothing that matters": {
			newScript().run1("CREATE TEMP VIEW tv AS SELECT 1 AS n", "CREATE VIEW", 'I').run1("SELECT * FROM tv", "SELECT 1", 'I'), nil,
		},
		"rows": {
			newScript().run1("CREATE TEMP TABLE tt AS SELECT n FROM users", "SELECT 3", 'I').run1("SELECT * FROM tt", "SELECT 3", 'I'), nil,
		},
		"default": {
			newScript().run1("CREATE TEMP TABLE tt (n int, v int DEFAULT leak_users())", "CREATE TABLE", 'I').run1("INSERT INTO tt VALUES (1) RETURNING v", "INSERT 0 1", 'I'),
			[]string{"INSERT INTO tt VALUES (1) RETURNING v; tt="},
		},
		"domain": {
			newScript().run1("CREATE DOMAIN pg_temp.d AS int CHECK (VALUE > users())", "CREATE DOMAIN", 'I').run1("SELECT 1::d", "SELECT 1", 'I'),
			[]string{"SELECT 1::d; d="},
		},
		"trigger": {
			newScript().run1("CREATE TEMP TABLE tt (n int)", "CREATE TABLE", 'I').run1("CREATE TRIGGER g BEFORE INSERT ON tt FOR EACH ROW EXECUTE FUNCTION users_count()", "CREATE TRIGGER", 'I').
				run1("INSERT INTO tt VALUES (1)", "INSERT 0 1", 'I'),
			[]string{"INSERT INTO tt VALUES (1); tt="},
		},
		"column renamed": {
			newScript().run1("CREATE TEMP VIEW tv AS SELECT n FROM users", "CREATE VIEW", 'I').run1("ALTER VIEW tv RENAME COLUMN n TO m", "ALTER VIEW", 'I').
				run1("TABLE tv", "SELECT 1", 'I'),
			[]string{"TABLE tv; tv="},
		},
		"renamed": {
			newScript().run1("CREATE TEMP VIEW tv AS SELECT n FROM users", "CREATE VIEW", 'I').run1("ALTER VIEW tv RENAME TO tw", "ALTER VIEW", 'I').
				run1("TABLE tw", "SELECT 1", 'I').run1("TABLE tv", "SELECT 1", 'I'),
			[]string{"TABLE tw; tw=CREATE TEMP VIEW tv AS SELECT n FROM users"},
		},
		"dropped": {
			newScript().run1("CREATE TEMP VIEW tv AS SELECT n FROM users", "CREATE VIEW", 'I').run1("DROP VIEW tv", "DROP VIEW", 'I').run1("TABLE tv", "SELECT 1", 'I'), nil,
		},
		"rolled back": {
			newScript().run1("BEGIN", "BEGIN", 'T').run1("CREATE TEMP VIEW tv AS SELECT n FROM users", "CREATE VIEW", 'T').run1("ROLLBACK", "ROLLBACK", 'I').
				run1("TABLE tv", "SELECT 1", 'I'), nil,
		},
		"temporary function": {
			newScript().run1("SELECT pg_temp.f()", "SELECT 1", 'I').run1(`SELECT "pg_temp_3".f()`, "SELECT 1", 'I').run1("SELECT 'temp', a_temp", "SELECT 1", 'I'),
			[]string{"SELECT pg_temp.f(); ", `SELECT "pg_temp_3".f(); `},
		},
		"prepared before": {
			newScript().parse("a", "SELECT * FROM tv").sync().parsed().ready('I').
				run1("CREATE TEMP VIEW tv AS SELECT n FROM users", "CREATE VIEW", 'I').
				bind("", "a").execute("").sync().bound("SELECT 1").ready('I'),
			[]string{"SELECT * FROM tv; tv=CREATE TEMP VIEW tv AS SELECT n FROM users"},
		},
		"prepared": {
			newScript().run1("CREATE TEMP VIEW tv AS SELECT n FROM users", "CREATE VIEW", 'I').run1("PREPARE p AS SELECT * FROM tv", "PREPARE", 'I').
				run1("EXECUTE p", "SELECT 1", 'I'),
			[]string{"SELECT * FROM tv; tv=CREATE TEMP VIEW tv AS SELECT n FROM users"},
		},
		"too large": {
			newScript().run1("CREATE TEMP VIEW tv AS SELECT n FROM users WHERE '"+strings.Repeat("x", 65<<10)+"' > ''", "CREATE VIEW", 'I').run1("TABLE tv", "SELECT 1", 'I'),
			[]string{"TABLE tv; tv="},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := c.script.feed(aboutUsers)
			if r.Off != tracker.On {
				t.Fatal("the session is not followed any more")
			}
			var got []string
			for _, q := range r.Queries {
				if aboutUsers(q.SQL) || slices.Contains([]string{"CREATE", "ALTER", "DROP", "PREPARE"}, strings.Fields(q.SQL)[0]) {
					continue
				}
				var definitions []string
				for _, d := range q.Temps {
					definitions = append(definitions, d.Name+"="+d.View)
				}
				got = append(got, q.SQL+"; "+strings.Join(definitions, ", "))
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestTemporaryTables: with the names of the catalogs, a temporary table matters if creating, extending or filling it may
// run what is protected, declared or unknown.
func TestTemporaryTables(t *testing.T) {
	t.Parallel()
	filter := capture.NewFilter(capture.Names{Reaching: []string{"users", "leak", "leaky_domain"}, Known: []string{"users", "leak", "leaky_domain", "plain", "lower", "int4", "text", "=", ">"}})
	matters := func(sql string) bool { return filter.Sight(sql) >= capture.Unknown }
	for statement, want := range map[string]bool{
		"CREATE TEMP TABLE tt (a int, b text)":                                   false,
		"CREATE TEMP TABLE tt (a int, b numeric(8, 2) NOT NULL) ON COMMIT DROP":  false,
		"CREATE TEMP TABLE tt (a int, b text DEFAULT lower('X'))":                false,
		"CREATE TEMP SEQUENCE tt":                                                false,
		"CREATE TEMP TABLE tt (a int DEFAULT leak())":                            true,
		"CREATE TEMP TABLE tt (a int DEFAULT fresh())":                           true,
		"CREATE TEMP TABLE tt (a int CHECK (a > leak()))":                        true,
		"CREATE TEMP TABLE tt (a leaky_domain)":                                  true,
		"CREATE TEMP TABLE tt (LIKE plain INCLUDING ALL)":                        true,
		"CREATE TEMP TABLE tt (a int) INHERITS (plain)":                          true,
		"CREATE INDEX ON tt (a)":                                                 false,
		"CREATE INDEX ON tt (lower(b)) WHERE a > 1":                              false,
		"CREATE INDEX ON tt (fresh(a))":                                          true,
		"ALTER TABLE tt ADD c int":                                               false,
		"ALTER TABLE tt ADD c int DEFAULT fresh()":                               true,
		"CREATE TRIGGER g BEFORE INSERT ON tt FOR EACH ROW EXECUTE FUNCTION f()": true,
	} {
		t.Run(statement, func(t *testing.T) {
			t.Parallel()
			s := newScript()
			if !strings.Contains(statement, "TEMP") {
				s.run1("CREATE TEMP TABLE tt (a int, b text)", "CREATE TABLE", 'I')
			}
			tag, _, _ := strings.Cut(strings.Replace(statement, "TEMP ", "", 1), " tt")
			tag = strings.Join(strings.Fields(tag)[:2], " ")
			r := s.run1(statement, tag, 'I').run1("INSERT INTO tt VALUES (1)", "INSERT 0 1", 'I').feed(matters)
			got := slices.ContainsFunc(r.Queries, func(q capture.Query) bool { return strings.HasPrefix(q.SQL, "INSERT") && len(q.Temps) > 0 })
			if got != want {
				t.Errorf("matters: %v, want %v: %+v", got, want, r.Queries)
			}
		})
	}
}
