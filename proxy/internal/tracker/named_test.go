package tracker_test

import "testing"

// TestNamed: a captured query records whether its statement had a name; for named statements the server can cache
// plans.
func TestNamed(t *testing.T) {
	t.Parallel()
	inSQL := newScript()
	inSQL.play("PREPARE s AS SELECT 1; EXECUTE s -> PREPARE;SELECT 1")
	for name, tc := range map[string]struct {
		script *script
		want   bool
	}{
		"named":              {newScript().parse("s", "SELECT 1").bind("", "s").execute("").sync().parsed().bound("SELECT 1").ready('I'), true},
		"unnamed":            {newScript().parse("", "SELECT 1").bind("", "").execute("").sync().parsed().bound("SELECT 1").ready('I'), false},
		"a portal of a name": {newScript().parse("", "SELECT 1").bind("p", "").execute("p").sync().parsed().bound("SELECT 1").ready('I'), false},
		"prepared in SQL":    {inSQL, true},
		"a simple query":     {newScript().run1("SELECT 1", "SELECT 1", 'I'), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := tc.script.run(t)
			if len(r.Queries) == 0 {
				t.Fatal("nothing was captured")
			}
			if q := r.Queries[len(r.Queries)-1]; q.SQL != "SELECT 1" || q.Named != tc.want {
				t.Errorf("captured %q, named: %t, want %t", q.SQL, q.Named, tc.want)
			}
		})
	}
}
