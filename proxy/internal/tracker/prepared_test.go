package tracker_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/proxy/internal/tracker"
)

// executions returns the queries captured in the extended form: SQL, and each parameter with its type.
func (r result) executions() []capture.Query {
	var out []capture.Query
	for _, q := range r.Queries {
		if q.Protocol == capture.Extended {
			out = append(out, capture.Query{SQL: q.SQL, Params: q.Params, Tag: q.Tag})
		}
	}
	return out
}

func text(oid uint32, value string) capture.Param {
	return capture.Param{OID: oid, Value: []byte(value)}
}

// TestSQLPrepared: statements prepared and executed by name, in SQL, by protocol, or one by each.
func TestSQLPrepared(t *testing.T) {
	t.Parallel()
	sql := func(statements ...string) *script {
		s := newScript()
		for _, statement := range statements {
			s.play(statement)
		}
		return s
	}
	tests := []struct {
		name   string
		script *script
		want   []capture.Query
		skip   map[tracker.Reason]uint64
	}{
		{
			"both in SQL", sql("PREPARE p (int, text) AS SELECT $1, $2", "EXECUTE p(41, 'it''s') -> SELECT 1", "execute P (NULL, '') -> SELECT 1"),
			[]capture.Query{
				{SQL: "SELECT $1, $2", Params: []capture.Param{text(23, "41"), text(25, "it's")}, Tag: "SELECT 1"},
				{SQL: "SELECT $1, $2", Params: []capture.Param{{OID: 23, Null: true}, text(25, "")}, Tag: "SELECT 1"},
			},
			nil,
		},
		{
			"inferred types", sql("PREPARE p AS SELECT anon_count(id, $1) FROM users", "EXECUTE p(0.5) -> SELECT 1"),
			[]capture.Query{{SQL: "SELECT anon_count(id, $1) FROM users", Params: []capture.Param{text(0, "0.5")}, Tag: "SELECT 1"}},
			nil,
		},
		{
			"in one query", sql("PREPARE p AS SELECT 1; EXECUTE p; DEALLOCATE p -> PREPARE;SELECT 1;DEALLOCATE"),
			[]capture.Query{{SQL: "SELECT 1", Tag: "SELECT 1"}},
			nil,
		},
		{
			"prepared by protocol, executed in SQL", newScript().parse("s", "SELECT $1", 25).sync().parsed().ready('I').run1("EXECUTE s('x')", "SELECT 1", 'I'),
			[]capture.Query{{SQL: "SELECT $1", Params: []capture.Param{text(25, "x")}, Tag: "SELECT 1"}},
			nil,
		},
		{
			"prepared in SQL, executed by protocol", sql("PREPARE s (int) AS SELECT $1").bind("", "s", "7").execute("").sync().bound("SELECT 1").ready('I'),
			[]capture.Query{{SQL: "SELECT $1", Params: []capture.Param{text(23, "7")}, Tag: "SELECT 1"}},
			nil,
		},
		{
			"EXECUTE in the extended protocol", sql("PREPARE s (int) AS SELECT $1").parse("", "EXECUTE s(3)").bind("", "").execute("").sync().parsed().bound("SELECT 1").ready('I'),
			[]capture.Query{{SQL: "SELECT $1", Params: []capture.Param{text(23, "3")}, Tag: "SELECT 1"}},
			nil,
		},
		{
			"prepared anew under the name", sql("PREPARE p AS SELECT 1", "DEALLOCATE p", "PREPARE p AS SELECT 2", "EXECUTE p -> SELECT 1"),
			[]capture.Query{{SQL: "SELECT 2", Tag: "SELECT 1"}},
			nil,
		},
		{
			"it outlives a rollback", sql("T:BEGIN", "T:PREPARE p AS SELECT 1", "ROLLBACK", "EXECUTE p -> SELECT 1"),
			[]capture.Query{{SQL: "SELECT 1", Tag: "SELECT 1"}},
			nil,
		},
		{"failed PREPARE", sql("PREPARE p AS SELECT 1 -> !", "EXECUTE p -> SELECT 1"), nil, map[tracker.Reason]uint64{tracker.UnknownStatement: 1}},
		{"failed EXECUTE", sql("PREPARE p AS SELECT 1", "EXECUTE p -> !"), []capture.Query{{SQL: "SELECT 1"}}, nil},
		{"deallocated", sql("PREPARE p AS SELECT 1", "DEALLOCATE ALL", "EXECUTE p -> SELECT 1"), nil, map[tracker.Reason]uint64{tracker.UnknownStatement: 1}},
		{"an expression", sql("PREPARE p AS SELECT $1", "EXECUTE p(1 + 1) -> SELECT 1"), nil, map[tracker.Reason]uint64{tracker.Arguments: 1}},
		{"rounded", sql("PREPARE p (int) AS SELECT $1", "EXECUTE p(1.5) -> SELECT 1"), nil, map[tracker.Reason]uint64{tracker.Arguments: 1}},
		{"a type that is not known", sql("PREPARE p (app.kind) AS SELECT $1", "EXECUTE p('x') -> SELECT 1"), nil, map[tracker.Reason]uint64{tracker.Arguments: 1}},
		{
			"a type that is not known, by protocol", sql("PREPARE p (app.kind) AS SELECT $1").bind("", "p", "x").execute("").sync().bound("SELECT 1").ready('I'),
			nil,
			map[tracker.Reason]uint64{tracker.Arguments: 1},
		},
		{"too long", sql("PREPARE p AS SELECT '"+long(300)+"'", "EXECUTE p -> SELECT 1"), nil, map[tracker.Reason]uint64{tracker.TooLong: 2}},
		{
			"within another", sql("PREPARE p (int) AS SELECT $1", "EXPLAIN (ANALYZE) EXECUTE p (3) -> EXPLAIN", "CREATE TABLE t AS EXECUTE p (4) -> SELECT 1"),
			[]capture.Query{
				{SQL: "EXPLAIN (ANALYZE) SELECT $1", Params: []capture.Param{text(23, "3")}, Tag: "EXPLAIN"},
				{SQL: "CREATE TABLE t AS SELECT $1", Params: []capture.Param{text(23, "4")}, Tag: "SELECT 1"},
			},
			nil,
		},
		{"within another, not prepared", sql("EXPLAIN ANALYZE EXECUTE p"), nil, map[tracker.Reason]uint64{tracker.UnknownStatement: 1}},
		{
			"one that executes itself", newScript().parse("s", "EXECUTE s").sync().parsed().ready('I').run1("EXECUTE s", "SELECT 1", 'I'),
			nil,
			map[tracker.Reason]uint64{tracker.Unreadable: 1},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			r := test.script.run(t)
			if diff := cmp.Diff(test.want, r.executions()); diff != "" {
				t.Error(diff)
			}
			for reason, n := range r.Counts.Skipped {
				if n != test.skip[tracker.Reason(reason)] {
					t.Errorf("skipped %d for reason %d, want %d", n, reason, test.skip[tracker.Reason(reason)])
				}
			}
			for _, q := range r.Queries {
				if len(q.SQL) > 6 && q.SQL[:7] == "EXECUTE" {
					t.Errorf("captured %q", q.SQL)
				}
			}
		})
	}
}
