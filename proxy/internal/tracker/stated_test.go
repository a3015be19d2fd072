package tracker_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dpwatch/dpwatch/proxy/internal/tracker"
)

// TestStated: what the engine states belongs to the statement whose answer the next record ends. It is unclear about
// several statements of one message, and about an answer that ended early.
func TestStated(t *testing.T) {
	t.Parallel()
	execute := func(s *script, portal string) *script { return s.bind(portal, "").execute(portal) }
	for name, c := range map[string]struct {
		script *script
		want   []string
	}{
		"simple":           {newScript().query("SELECT 1").back('T', "").state(2).complete("SELECT 1").ready('I').run1("SELECT 2", "SELECT 1", 'I'), []string{"SELECT 1 2", "SELECT 2 0"}},
		"several":          {newScript().query("DO 'x'; SELECT 1").state(9).complete("DO").back('T', "").complete("SELECT 1").ready('I'), []string{"DO 'x' unclear", "SELECT 1 unclear"}},
		"several, nothing": {newScript().query("SELECT 1; SELECT 2").complete("SELECT 1").complete("SELECT 1").ready('I'), []string{"SELECT 1 0", "SELECT 2 0"}},
		"a pipeline": {
			execute(execute(execute(newScript().parse("", "SELECT f(x) FROM t"), ""), ""), "").sync().parsed().
				back('2', "").state(1).complete("SELECT 1").back('2', "").complete("SELECT 1").back('2', "").state(3).complete("SELECT 1").ready('I'),
			[]string{"SELECT f(x) FROM t 1", "SELECT f(x) FROM t 0", "SELECT f(x) FROM t 3"},
		},
		"suspended": {
			newScript().parse("", "SELECT 1").bind("", "").execute("").execute("").sync().parsed().back('2', "").state(1).back('s', "").state(2).complete("SELECT 1").ready('I'),
			[]string{"SELECT 1 1", "SELECT 1 2"},
		},
		"suspended, nothing": {
			newScript().parse("", "SELECT 1").bind("", "").execute("").execute("").sync().parsed().back('2', "").back('s', "").state(2).complete("SELECT 1").ready('I'),
			[]string{"SELECT 1 unclear", "SELECT 1 2"},
		},
		"failed":          {newScript().query("SELECT 1").back('T', "").state(2).failWith("22012").ready('I'), []string{"SELECT 1 2"}},
		"failed, nothing": {newScript().query("SELECT 1").back('T', "").failWith("22012").ready('I'), []string{"SELECT 1 unclear"}},
		"EXECUTE":         {newScript().run1("PREPARE p AS SELECT 1", "PREPARE", 'I').query("EXECUTE p").back('T', "").state(2).complete("SELECT 1").ready('I'), []string{"PREPARE p AS SELECT 1 0", "SELECT 1 2"}},
		"before a gap":    {newScript().query("SELECT 1").back('T', "").state(9).gap().run1("SELECT 2", "SELECT 1", 'I'), []string{"SELECT 2 0"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.script.states = true
			var got []string
			for _, q := range c.script.run(t).Queries {
				said := fmt.Sprint(q.SQL, " ", q.Stated.Epsilon)
				if q.Stated.Unclear {
					said = q.SQL + " unclear"
				}
				got = append(got, said)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestStatedOff: without claims of the engine, an answer that ended early is as before.
func TestStatedOff(t *testing.T) {
	t.Parallel()
	var r result
	s := newScript().query("SELECT 1").back('T', "").failWith("22012").ready('I')
	tracker.New(s.config(&r)).Feed(join(s.client), join(s.server))
	if len(r.Queries) != 1 || !r.Queries[0].Stated.None() {
		t.Errorf("%+v", r.Queries)
	}
}
