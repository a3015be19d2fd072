package audit_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/outcome"
	"github.com/dpwatch/dpwatch/internal/pg/catalog/read"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
	"github.com/dpwatch/dpwatch/replay"
	"github.com/dpwatch/dpwatch/rewrite"
	"github.com/dpwatch/dpwatch/rewrite/reasons"
)

// TestReplayFindsWhatProductionFound: on two databases, a replay calls the same functions, operators and types as the
// client's session, whatever shadow.search_path contains; if it would call others, the query is refused.
func TestReplayFindsWhatProductionFound(t *testing.T) {
	t.Parallel()
	const people = "CREATE SCHEMA %[1]s; CREATE TABLE %[1]s.people AS SELECT g AS id, ('Name' || g)::varchar AS name FROM generate_series(1, %[2]d) g;"
	const overloads = `
		CREATE FUNCTION public.lower(varchar) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT (1 / (length($1) - length($1)))::text';
		CREATE FUNCTION public.wrong(int, int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT 1000';
		CREATE OPERATOR public.+ (LEFTARG = int, RIGHTARG = int, FUNCTION = public.wrong);
		CREATE TYPE public.level AS ENUM ('low', 'high');`
	engine, shadow := pgtest.Database(t), pgtest.Database(t)
	pgtest.Exec(t, engine, fmt.Sprintf(people, "app", 7)+overloads+`
		CREATE TYPE app.level AS ENUM ('high', 'low');
		CREATE FUNCTION app.scaled(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT 2 * $1';`)
	pgtest.Exec(t, shadow, fmt.Sprintf(people, "d0", 7)+fmt.Sprintf(people, "d1", 6)+overloads+`
		CREATE SCHEMA app; CREATE FUNCTION public.scaled(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT 2 * $1';`)
	o := rewrite.Options{
		Protected: []rewrite.Table{{Schema: "app", Name: "people"}}, Neighbours: []string{"d0", "d1"},
		AllowFunctions: []string{"scaled", "lower"}, ShadowPath: []string{"public"},
	}
	var err error
	if o.Source, err = read.Catalog(t.Context(), engine, time.Minute); err != nil {
		t.Fatal(err)
	}
	if o.Shadow, err = read.Catalog(t.Context(), shadow, time.Minute); err != nil {
		t.Fatal(err)
	}
	r, err := rewrite.New(o)
	if err != nil {
		t.Fatal(err)
	}
	player, err := replay.New(replay.Options{
		DSN: shadow, SearchPath: o.ShadowPath, StatementTimeout: time.Minute, ConnectTimeout: time.Minute, MaxRows: 1000, MaxBytes: 1 << 20,
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path, sql, refused string
	}{
		{"app", "SELECT min(lower(name)) FROM people", ""},
		{"app", "SELECT sum(id + 1) FROM people", ""},
		{"app", "SELECT sum(scaled(id)) FROM people", ""},
		{"app", "SELECT sum(scaled(id)), max(upper(name)) FROM people", ""},
		{"app", "SELECT sum(scaled(id)), min(lower(name)) FROM people", "function lower has more overloads in the shadow database"},
		{"app", "SELECT sum(scaled(id) + 1) FROM people", "operator + has more overloads in the shadow database"},
		{"app", "SELECT sum(scaled(id)), max('low'::level) FROM people", "type level refers to another type in the shadow database"},
		{"app, public", "SELECT sum(id + 1) FROM people", ""},
		{"app, public", "SELECT lower(name) FROM people", ""}, // fails in both databases alike
		{"app, public", "SELECT max('low'::public.level) FROM people", ""},
	} {
		t.Run(c.path+": "+c.sql, func(t *testing.T) {
			t.Parallel()
			plan, err := r.Analyze(capture.Query{SQL: c.sql, User: "ann", Database: o.Source.Database, Settings: map[string]string{"search_path": c.path}})
			if c.refused != "" {
				var refusal *rewrite.UnsupportedError
				if !errors.As(err, &refusal) || refusal.Reason != reasons.ResolvesDifferently || refusal.Detail != c.refused || refusal.Hint == "" {
					t.Errorf("%v; want %s: %s", err, reasons.ResolvesDifferently, c.refused)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			s := replay.Statement{SearchPath: plan.SearchPath}
			for _, schema := range o.Neighbours {
				sql, err := plan.For(schema)
				if err != nil {
					t.Fatal(err)
				}
				s.Worlds = append(s.Worlds, sql)
			}
			run, err := player.Start(s, 1)
			if err != nil {
				t.Fatal(err)
			}
			defer run.Close()
			for batch, err := range run.Stream(t.Context(), 1) {
				if err != nil {
					t.Fatal(err)
				}
				want, got := production(t, engine, c.path, c.sql), first(batch.Rounds[0][0])
				if got != want {
					t.Errorf("the replay gives %s; production gave %s", got, want)
				}
				break
			}
		})
	}
}

// production returns the first value, or the SQLSTATE, as the client received it.
func production(t *testing.T, dsn, path, sql string) string {
	t.Helper()
	cfg, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	cfg.RuntimeParams["search_path"] = path
	conn, err := pgx.ConnectConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	result := conn.PgConn().ExecParams(t.Context(), sql, nil, nil, nil, nil).Read()
	if result.Err != nil {
		_, code, _ := strings.Cut(result.Err.Error(), "SQLSTATE ")
		return strings.TrimSuffix(code, ")")
	}
	return string(result.Rows[0][0])
}

// first returns the first value of a trial on D0, or its SQLSTATE.
func first(o outcome.Outcome) string {
	switch {
	case o.Failed():
		return o.SQLState
	case o.Rows[0][0].Kind == outcome.Number:
		return fmt.Sprint(o.Rows[0][0].Num)
	}
	return o.Rows[0][0].Text
}
