package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/internal/clienttest"
	"github.com/dpwatch/dpwatch/internal/longtest"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
)

// application is a schema that init, create and verify are tried on: by its own migrations, or of a file.
type application struct {
	name, person string
	edits        []string // what a user changes in the configuration: old and new texts, in turn
	audits       int      // of the tables whose answers change most; 0 all
}

// TestWhoseRows: see whoseRows. The schemas are a bank with transfers between two persons, and a hospital.
func TestWhoseRows(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	for _, a := range []application{
		{name: "bank", person: "client", edits: []string{`#   - {table: public.dispute, columns: ["watchers[]"]`, `  - {table: public.dispute, columns: ["watchers[]"]`}},
		{name: "hospital", person: "patients"},
	} {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			ddl, err := os.ReadFile(filepath.Join("testdata", "applications", a.name+".sql"))
			if err != nil {
				t.Fatal(err)
			}
			dsn := pgtest.Database(t)
			pgtest.Exec(t, dsn, string(ddl))
			whoseRows(t, a, dsn)
		})
	}
}

// TestApplications is TestWhoseRows for applications, whose migrations make the schemas (internal/clienttest).
func TestApplications(t *testing.T) {
	longtest.Scheduled(t)
	t.Parallel()
	for _, a := range []application{
		{name: "wagtail", person: "auth_user"},
		{name: "oscar", person: "auth_user"},
		{name: "directus", person: "directus_users"},
		{name: "medusa", person: "customer"},
	} {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			dsn := pgtest.Database(t)
			migrate(t, a.name, dsn)
			whoseRows(t, a, dsn)
		})
	}
}

// migrate lets the migrations of an application make their schema.
func migrate(t *testing.T, name, dsn string) {
	t.Helper()
	server := pgtest.Connect(t, dsn).Config()
	cmd := clienttest.Application(t, name)
	cmd.Env = append(os.Environ(), "DATABASE_URL="+dsn, "PGHOST="+server.Host, fmt.Sprint("PGPORT=", server.Port), "PGDATABASE="+server.Database,
		"PGUSER="+server.User, "PGPASSWORD="+server.Password)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("the migrations of %s: %v\n%s", name, err, out)
	}
}

const noise = `CREATE FUNCTION dp_noise(value float8, epsilon float8) RETURNS float8 LANGUAGE sql VOLATILE
	AS 'SELECT value + (ln(1 - random()) - ln(1 - random())) / epsilon'`

// whoseRows fills a schema and runs init, create and verify on it as a user does. It looks itself, by what the generator
// knows, for the person's table, rows of others that D1 lacks, and cells of D1 that name the removed person; and audits
// honest counts, sums and counts of distinct persons of every table. That one of these is called a violation has a
// probability of at most 1e-6 for each application, by --confidence.
func whoseRows(t *testing.T, a application, dsn string) {
	t.Helper()
	source := pgtest.Connect(t, dsn)
	f, err := fill(t.Context(), source, a.person, 1)
	if err != nil {
		t.Fatal(err)
	}
	pgtest.Exec(t, dsn, noise)
	shadow := source.Config().Database + "_shadow"
	pgtest.Exec(t, dsn, "CREATE DATABASE "+shadow)
	t.Cleanup(func() { pgtest.Exec(t, dsn, "DROP DATABASE "+shadow+" WITH (FORCE)") })
	s := source.Config()
	shadowDSN := fmt.Sprintf("postgres://%s:%s@%s:%d/%s?sslmode=disable", s.User, s.Password, s.Host, s.Port, shadow)
	pgtest.Exec(t, shadowDSN, noise)

	config := filepath.Join(t.TempDir(), "dpwatch.yaml")
	call(t, "", "init", "--dsn", dsn, "-o", config).want(t, exitDone)
	written := edit(t, config, append([]string{
		"user=dpwatch_replay", "user=dpwatch_copy", "user=dpwatch_copy", "user=dpwatch_owner",
		"user=dpwatch_owner", fmt.Sprintf("user=%s password=%s sslmode=disable", s.User, s.Password),
	}, a.edits...))
	if unit := regexp.MustCompile(`\n  unit:[^\n]*\n    table: (\S+)`).FindStringSubmatch(written); unit == nil || unit[1] != "public."+a.person {
		t.Fatalf("init takes %q for the person", unit)
	}
	call(t, "", "neighbours", "create", "--config", config).want(t, exitDone)
	verified := call(t, "", "neighbours", "verify", "--config", config)
	verified.want(t, exitDone)
	copies := pgtest.Connect(t, shadowDSN)
	checked := 0
	for _, schema := range []string{"d1_1", "d1_2"} {
		p := f.removed(t, copies, schema)
		for _, table := range f.tables {
			if !exists(t, copies, schema, table.name) {
				f.mentioned(t, table, written)
				continue
			}
			checked++
			f.lost(t, copies, schema, table, p)
			f.left(t, copies, schema, table, p)
		}
	}
	if checked < 4 {
		t.Errorf("%d tables were looked at", checked)
	}
	f.honest(t, a, copies, config)
	if t.Failed() {
		t.Logf("%s\nverify:\n%s%s", written, verified.stdout, verified.stderr)
	}
}

// edit replaces texts in a file.
func edit(t *testing.T, path string, replacements []string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	edited := string(text)
	for pair := range slices.Chunk(replacements, 2) {
		if !strings.Contains(edited, pair[0]) {
			t.Errorf("the configuration has no %q", pair[0])
		}
		edited = strings.ReplaceAll(edited, pair[0], pair[1])
	}
	if err := os.WriteFile(path, []byte(edited), 0o600); err != nil {
		t.Fatal(err)
	}
	return edited
}

func exists(t *testing.T, conn *pgx.Conn, schema, table string) bool {
	t.Helper()
	return scalar[*string](t, conn, "SELECT to_regclass($1)::text", quoted(schema, table)) != nil
}

// scalar returns the only value of a query.
func scalar[T any](t *testing.T, conn *pgx.Conn, sql string, args ...any) (v T) {
	t.Helper()
	if err := conn.QueryRow(context.Background(), sql, args...).Scan(&v); err != nil {
		t.Fatalf("%v\n%s", err, sql)
	}
	return v
}

// removed is the row of the person that a D1 lacks.
func (f *filling) removed(t *testing.T, conn *pgx.Conn, schema string) []*string {
	t.Helper()
	key := quoted(f.person.columns[f.person.primary()].name)
	lacks := scalar[[]string](t, conn, fmt.Sprintf("SELECT array_agg(%s::text) FROM d0.%s WHERE %[1]s NOT IN (SELECT %[1]s FROM %[3]s)", key, quoted(f.person.name), quoted(schema, f.person.name)))
	for n, row := range f.person.rows {
		if len(lacks) == 1 && *row[f.person.primary()] == lacks[0] && n >= 0 {
			return row
		}
	}
	t.Fatalf("%s lacks the persons %v, want one", schema, lacks)
	return nil
}

// names is the condition that a row names a person, or any if that is nil.
func (n naming) names(f *filling, p []*string) string {
	switch {
	case p == nil:
		key := "p." + quoted(f.person.columns[n.by].name) + "::text"
		return fmt.Sprintf("EXISTS (SELECT FROM d0.%s p WHERE %s)", quoted(f.person.name), fmt.Sprintf(strings.ReplaceAll(n.sql, quoted(n.column), "t."+quoted(n.column)), key))
	case p[n.by] == nil:
		return "false"
	}
	return fmt.Sprintf("COALESCE("+n.sql+", false)", "'"+strings.ReplaceAll(*p[n.by], "'", "''")+"'")
}

// lost counts the rows that D1 lacks although columns of theirs that say whose they are name others alone.
func (f *filling) lost(t *testing.T, conn *pgx.Conn, schema string, table *filledTable, p []*string) {
	t.Helper()
	mine, others := []string{"false"}, []string{"false"}
	for _, n := range f.of(table) {
		mine = append(mine, n.names(f, p))
		if n.own {
			others = append(others, n.names(f, nil))
		}
	}
	same := "t::text = o::text"
	if i := table.primary(); i >= 0 {
		same = fmt.Sprintf("t.%s = o.%[1]s", quoted(table.columns[i].name))
	}
	query := fmt.Sprintf("SELECT count(*) FROM d0.%s t WHERE NOT EXISTS (SELECT FROM %s o WHERE %s) AND NOT (%s) AND (%s)",
		quoted(table.name), quoted(schema, table.name), same, strings.Join(mine, " OR "), strings.Join(others, " OR "))
	if n := scalar[int](t, conn, query); n > 0 {
		t.Errorf("%s lacks %d rows of %s that name only others", schema, n, table.name)
	}
}

// left counts the cells of D1 that name the removed person: by what the generator knows, and as words of the whole row
// if the key, the login or the e-mail address is nothing else.
func (f *filling) left(t *testing.T, conn *pgx.Conn, schema string, table *filledTable, p []*string) {
	t.Helper()
	for _, n := range f.of(table) {
		if left := scalar[int](t, conn, fmt.Sprintf("SELECT count(*) FROM %s WHERE %s", quoted(schema, table.name), n.names(f, p))); left > 0 {
			t.Errorf("%s: %d cells of %s.%s name the removed person", schema, left, n.table, n.column)
		}
	}
	for i, c := range f.person.columns {
		if i != f.person.primary() && !emails.MatchString(c.name) && !logins.MatchString(c.name) || p[i] == nil || len(*p[i]) < 8 {
			continue
		}
		word := `(^|[^\w.-])` + regexp.QuoteMeta(*p[i]) + `($|[^\w.-])`
		if left := scalar[int](t, conn, fmt.Sprintf("SELECT count(*) FROM %s t WHERE t::text ~ $1", quoted(schema, table.name)), word); left > 0 {
			t.Errorf("%s: %d rows of %s contain the removed person's %s", schema, left, table.name, c.name)
		}
	}
}

// mentioned checks that the configuration names the columns of a table without a copy that name persons; of an act,
// its table.
func (f *filling) mentioned(t *testing.T, table *filledTable, config string) {
	t.Helper()
	for _, n := range f.of(table) {
		pattern := `(?m)^.*\b` + table.name + `\b`
		if !n.act {
			pattern += `.*\b` + n.column + `\b`
		}
		if !regexp.MustCompile(pattern).MatchString(config) {
			t.Errorf("init is silent on %s.%s, which names persons", table.name, n.column)
		}
	}
}

// honest checks that the answers of three queries on each table change between D0 and D1 by no more than one person
// changes them, and audits them together, with noise for that.
func (f *filling) honest(t *testing.T, a application, conn *pgx.Conn, config string) {
	type audit struct {
		table, sql string
		change     float64
	}
	var audits []audit
	belongs := f.belongs()
	for _, table := range f.tables {
		if !exists(t, conn, "d0", table.name) {
			continue
		}
		answers, together := f.queries(table, belongs[table])
		var columns []string
		largest := 0.0
		for _, q := range answers {
			columns = append(columns, fmt.Sprintf("dp_noise((%s) / %v::float8, 1.0)", strings.ReplaceAll(q.sql, "@", "public"), together*max(q.most, 1)))
			on := fmt.Sprintf("SELECT (%s)::float8", q.sql)
			d0 := scalar[float64](t, conn, strings.ReplaceAll(on, "@", "d0"))
			for _, schema := range []string{"d1_1", "d1_2"} {
				change := math.Abs(d0 - scalar[float64](t, conn, strings.ReplaceAll(on, "@", schema)))
				if change > q.most {
					t.Errorf("%s: an answer changes by %v in %s, and by %v at most for one person: %s", table.name, change, schema, q.most, q.sql)
				}
				largest = max(largest, change/max(q.most, 1))
			}
		}
		if together > 0 {
			audits = append(audits, audit{table.name, "SELECT " + strings.Join(columns, ", "), largest})
		}
	}
	slices.SortStableFunc(audits, func(x, y audit) int { return int(math.Copysign(1, y.change-x.change)) })
	if a.audits > 0 {
		audits = audits[:min(a.audits, len(audits))]
	}
	confidence := strconv.FormatFloat(1-1e-6/float64(len(audits)), 'f', -1, 64)
	for _, audit := range audits {
		cmd := program(t.Context(), "audit", "--config", config, "--epsilon", "1", "--max-trials", "200", "--confidence", confidence, "--sql", audit.sql)
		out, _ := cmd.CombinedOutput()
		if code := cmd.ProcessState.ExitCode(); code == exitViolation || code == exitFailure {
			t.Errorf("%s: an honest query: exit code %d\n%s\n%s", audit.table, code, audit.sql, out)
		}
	}
	t.Logf("%d honest queries were audited", len(audits))
}
