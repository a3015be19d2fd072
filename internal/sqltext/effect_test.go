package sqltext_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dpwatch/dpwatch/internal/sqltext"
)

func TestAnalyze(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 70)
	set := func(name, value string) sqltext.Effect {
		return sqltext.Effect{Action: sqltext.Set, Name: name, Value: value}
	}
	tests := []struct {
		in   string
		want sqltext.Effect
	}{
		{"", sqltext.Effect{}},
		{"SELECT 1", sqltext.Effect{}},
		{"(SELECT 1)", sqltext.Effect{}},

		{"SET dp.epsilon = 0.5", set("dp.epsilon", "0.5")},
		{"set DP.Epsilon to '0.5'", set("dp.epsilon", "0.5")},
		{`SET "Dp"."Epsilon" = $$0.5$$`, set("dp.epsilon", "0.5")},
		{"/* a */ SET -- b\n x /* c */ = /* d */ -3", set("x", "-3")},
		{"SET x = +1e-6", set("x", "1e-6")},
		{"SET x TO On", set("x", "on")},
		{`SET x TO "On"`, set("x", "On")},
		{"SET x = 'it''s'", set("x", "it's")},
		{`SET x = E'a\'b\n'`, set("x", "a'b\n")},
		{"SET x = 'a'\n'b'", set("x", "ab")},
		{"SET x = ''", set("x", "")},
		{`SET x = E'\x41'`, sqltext.Effect{Action: sqltext.Unclear}},
		{"SET x FROM CURRENT", sqltext.Effect{Action: sqltext.Unclear}},
		{"SET DateStyle = ISO, 'DMY'", set("datestyle", "iso, DMY")},
		{`SET search_path = "$user", public, "My Schema", 'a"b'`, set("search_path", `"$user", public, "My Schema", "a""b"`)},
		{"SET search_path TO ''", set("search_path", `""`)},
		{"SET SCHEMA 'd1'", set("search_path", "d1")},
		{"SET SESSION x = 1", set("x", "1")},
		{"SET LOCAL x = 1", sqltext.Effect{Action: sqltext.Set, Name: "x", Value: "1", Local: true}},
		{"SET LOCAL x TO DEFAULT", sqltext.Effect{Action: sqltext.Reset, Name: "x", Local: true}},
		{"SET x = DEFAULT", sqltext.Effect{Action: sqltext.Reset, Name: "x"}},
		{"SET x = 'default'", set("x", "default")},
		{"SET TIME ZONE 'UTC'", set("timezone", "UTC")},
		{"SET LOCAL TIME ZONE -3", sqltext.Effect{Action: sqltext.Set, Name: "timezone", Value: "-3", Local: true}},
		{"SET TIME ZONE LOCAL", sqltext.Effect{Action: sqltext.Reset, Name: "timezone"}},
		{"SET TIME ZONE INTERVAL '1' HOUR TO MINUTE", sqltext.Effect{Action: sqltext.Unclear}},
		{"SET NAMES 'latin1'", set("client_encoding", "latin1")},
		{"SET NAMES", sqltext.Effect{Action: sqltext.Reset, Name: "client_encoding"}},
		{"SET ROLE analyst", set("role", "analyst")},
		{"SET SESSION AUTHORIZATION 'ann'", set("session_authorization", "ann")},
		{"SET LOCAL SESSION AUTHORIZATION DEFAULT", sqltext.Effect{Action: sqltext.Reset, Name: "session_authorization", Local: true}},
		{"SET XML OPTION DOCUMENT", set("xmloption", "document")},
		{"SET TRANSACTION ISOLATION LEVEL SERIALIZABLE", sqltext.Effect{}},
		{"SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY", sqltext.Effect{}},
		{"SET CONSTRAINTS ALL DEFERRED", sqltext.Effect{}},
		{"SET x = 1 garbage", sqltext.Effect{Action: sqltext.Unclear}},
		{"SET", sqltext.Effect{Action: sqltext.Unclear}},

		{"RESET x.y", sqltext.Effect{Action: sqltext.Reset, Name: "x.y"}},
		{"RESET ALL", sqltext.Effect{Action: sqltext.ResetAll}},
		{"RESET TIME ZONE", sqltext.Effect{Action: sqltext.Reset, Name: "timezone"}},
		{"RESET SESSION AUTHORIZATION", sqltext.Effect{Action: sqltext.Reset, Name: "session_authorization"}},
		{"DISCARD ALL", sqltext.Effect{Action: sqltext.DiscardAll}},
		{"DISCARD PLANS", sqltext.Effect{}},
		{"DISCARD TEMP", sqltext.Effect{Action: sqltext.DiscardTemp}},
		{"DISCARD temporary", sqltext.Effect{Action: sqltext.DiscardTemp}},

		{"begin isolation level serializable", sqltext.Effect{Action: sqltext.Begin}},
		{"START TRANSACTION", sqltext.Effect{Action: sqltext.Begin}},
		{"COMMIT", sqltext.Effect{Action: sqltext.Commit}},
		{"END WORK AND CHAIN", sqltext.Effect{Action: sqltext.Commit, Chain: true}},
		{"COMMIT AND NO CHAIN", sqltext.Effect{Action: sqltext.Commit}},
		{"COMMIT PREPARED 'x'", sqltext.Effect{}},
		{"PREPARE TRANSACTION 'x'", sqltext.Effect{Action: sqltext.Commit}},
		{"ABORT", sqltext.Effect{Action: sqltext.Rollback}},
		{"ROLLBACK TRANSACTION AND CHAIN", sqltext.Effect{Action: sqltext.Rollback, Chain: true}},
		{"ROLLBACK PREPARED 'x'", sqltext.Effect{}},
		{"SAVEPOINT A", sqltext.Effect{Action: sqltext.Savepoint, Name: "a"}},
		{"ROLLBACK TO a", sqltext.Effect{Action: sqltext.RollbackTo, Name: "a"}},
		{`ROLLBACK WORK TO SAVEPOINT "A"`, sqltext.Effect{Action: sqltext.RollbackTo, Name: "A"}},
		{"ROLLBACK TO savepoint", sqltext.Effect{Action: sqltext.RollbackTo, Name: "savepoint"}},
		{"RELEASE SAVEPOINT a", sqltext.Effect{Action: sqltext.Release, Name: "a"}},
		{"RELEASE a", sqltext.Effect{Action: sqltext.Release, Name: "a"}},

		{"PREPARE p (int) AS SELECT $1", sqltext.Effect{Action: sqltext.Prepare, Name: "p", Types: []uint32{23}, Statement: "SELECT $1", Plain: true}},
		{"PREPARE " + long + " AS SELECT 1", sqltext.Effect{Action: sqltext.Prepare, Name: long[:63], Statement: "SELECT 1", Plain: true}},
		{"PREPARE transaction AS SELECT 1", sqltext.Effect{Action: sqltext.Prepare, Name: "transaction", Statement: "SELECT 1", Plain: true}},
		{"PREPARE p", sqltext.Effect{Action: sqltext.Unclear}},
		{"EXPLAIN EXECUTE p", sqltext.Effect{Action: sqltext.ExecuteWithin}},
		{"CREATE TEMP TABLE t AS EXECUTE p", sqltext.Effect{Action: sqltext.ExecuteWithin, Temp: &sqltext.TempChange{Made: "t"}}},
		{"DEALLOCATE p", sqltext.Effect{Action: sqltext.Deallocate, Name: "p"}},
		{"DEALLOCATE PREPARE p", sqltext.Effect{Action: sqltext.Deallocate, Name: "p"}},
		{"DEALLOCATE PREPARE", sqltext.Effect{Action: sqltext.Deallocate, Name: "prepare"}},
		{"DEALLOCATE ALL", sqltext.Effect{Action: sqltext.Deallocate}},
		{`DEALLOCATE "all"`, sqltext.Effect{Action: sqltext.Deallocate, Name: "all"}},
		{"DECLARE c CURSOR FOR SELECT 1", sqltext.Effect{Action: sqltext.DeclareCursor, Name: "c"}},
		{"CLOSE c", sqltext.Effect{Action: sqltext.CloseCursor, Name: "c"}},
		{"CLOSE ALL", sqltext.Effect{Action: sqltext.CloseCursor}},

		{"SELECT pg_catalog.Set_Config('A.b', '1', false)", set("a.b", "1")},
		{"SELECT set_config('search_path', 'a, b', 'true')", sqltext.Effect{Action: sqltext.Set, Name: "search_path", Value: "a, b", Local: true}},
		{"SELECT set_config('a.b', $1, false)", sqltext.Effect{Hidden: true}},
		{"SELECT set_config('a.b', '1', false) WHERE false", sqltext.Effect{Hidden: true}},
		{"SELECT set_config('a.b', '1', false), set_config('a.c', '1', false)", sqltext.Effect{Hidden: true}},
		{"SELECT set_config('a.b', NULL, false)", sqltext.Effect{Hidden: true}},
		{"SELECT set_config('a.b', '1', 't')", sqltext.Effect{Hidden: true}},
		{`SELECT "set_config"('a.b', '1', false)`, sqltext.Effect{Hidden: true}},
		{`SELECT U&"set\005fconfig"('a.b', '1', false)`, sqltext.Effect{Hidden: true}},
		{"WITH a AS (UPDATE pg_settings SET setting = 1) SELECT 1", sqltext.Effect{Hidden: true}},
		{"SELECT * FROM pg_settings", sqltext.Effect{}},
		{"SELECT reset_config, set_ config FROM a_b", sqltext.Effect{Hidden: true}},
		{"SELECT set_ config, _config FROM a_b", sqltext.Effect{}},
		{"DO $$ BEGIN SET x = 1; END $$", sqltext.Effect{Hidden: true}},
		{"DO $$ BEGIN NULL; END $$", sqltext.Effect{}},
		{"UPDATE t SET a = 1", sqltext.Effect{}},
	}
	for _, test := range tests {
		t.Run(test.in, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(test.want, sqltext.Analyze(test.in)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func BenchmarkAnalyze(b *testing.B) {
	sql := "SELECT store_id, anon_sum(spent, 0, 500, 0.5) FROM transactions WHERE spent > $1 GROUP BY store_id"
	b.ReportAllocs()
	for b.Loop() {
		sqltext.Analyze(sqltext.Split(sql)[0])
	}
}
