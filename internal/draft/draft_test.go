package draft_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/config"
	"github.com/dpwatch/dpwatch/internal/draft"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// parsed returns the configuration that Make writes for a database with a schema, and its text.
func parsed(t *testing.T, dsn, unit string) (config.Config, string, string) {
	t.Helper()
	file, sql, err := draft.Make(t.Context(), dsn, draft.Options{Unit: unit})
	if err != nil {
		t.Fatal(err)
	}
	c, err := config.Parse("dpwatch.yaml", []byte(file), func(string) string { return "" })
	if err != nil {
		t.Fatalf("%v\n%s", err, file)
	}
	return c, file, sql
}

// TestOddNames: names with line breaks and variables of the environment leave the file valid.
func TestOddNames(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	const odd = `"x
y: ${HOME} # '\` + "\u2028" + `z"`
	pgtest.Exec(t, dsn, "CREATE SCHEMA "+odd, "SET search_path TO "+odd+"; CREATE TABLE users ("+odd+" text PRIMARY KEY, \"e\nmail ${x}\" text UNIQUE, "+odd[:len(odd)-1]+"_type\" bytea)",
		"SET search_path TO "+odd+"; INSERT INTO users SELECT md5(i::text), 'a' || i || '@example.org' FROM generate_series(1, 9) i",
		"SET search_path TO "+odd+"; CREATE TABLE "+odd+" (id int PRIMARY KEY, "+odd+" text, \"kind\n${y} type\" text, \"kind\n${y} id\" text, email text, \"created\nby\" text REFERENCES users)",
		"SET search_path TO "+odd+"; INSERT INTO "+odd+" SELECT row_number() OVER (), "+odd+", 'users', "+odd+", \"e\nmail ${x}\", "+odd+" FROM users")
	c, file, _ := parsed(t, dsn, "")
	if !strings.HasSuffix(c.Privacy.Unit.Table, ".users") || len(c.Privacy.Paths) == 0 {
		t.Errorf("%+v\n%s", c.Privacy, file)
	}
}

// tables returns the protected tables, sorted.
func tables(c config.Config) []string { return slices.Sorted(slices.Values(c.Privacy.Protected)) }

func TestShop(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	pgtest.Exec(t, dsn, `CREATE TABLE shops (id int PRIMARY KEY);
		CREATE TABLE users (id int PRIMARY KEY, shop int REFERENCES shops);
		CREATE TABLE orders (id int PRIMARY KEY, user_id int REFERENCES users, shop int REFERENCES shops);
		CREATE TABLE products (id int PRIMARY KEY, shop int REFERENCES shops);
		CREATE TABLE "order ${x}
items" (order_id int REFERENCES orders, product int REFERENCES products);
		CREATE TABLE visits (user_id int, day date) PARTITION BY RANGE (day);
		CREATE TABLE visits_1 PARTITION OF visits FOR VALUES FROM ('2020-01-01') TO ('2021-01-01');
		CREATE TABLE settings (name text);
		CREATE FUNCTION noisy(value float8, scale float8) RETURNS float8 LANGUAGE sql VOLATILE AS 'SELECT value + random()';
		CREATE FUNCTION dp_count(value float8, epsilon float8, delta float8) RETURNS float8 LANGUAGE sql VOLATILE AS 'SELECT value + random()';
		CREATE FUNCTION dp_sum(value float8, low float8, high float8, epsilon float8) RETURNS float8 LANGUAGE sql VOLATILE AS 'SELECT value + random()';
		CREATE FUNCTION dp_sum(value float8, epsilon float8) RETURNS float8 LANGUAGE sql VOLATILE AS 'SELECT value + random()';
		CREATE FUNCTION anon_sum_with_bounds(float8, float8) RETURNS float8 LANGUAGE sql IMMUTABLE AS 'SELECT 1.0::float8';
		CREATE FUNCTION anon_count_step(bigint, int, float8) RETURNS bigint LANGUAGE sql AS 'SELECT $1 + 1';
		CREATE AGGREGATE anon_count(int, float8) (SFUNC = anon_count_step, STYPE = bigint, INITCOND = 0);
		CREATE VIEW noisy_count AS SELECT dp_count(count(*), 0.5, 0) AS n FROM users; CREATE VIEW above AS SELECT n FROM noisy_count;
		CREATE VIEW plain AS SELECT id FROM users; CREATE MATERIALIZED VIEW stored AS SELECT n FROM above`)
	c, file, sql := parsed(t, dsn, "")
	// shops has the most references; users has the name of persons.
	if c.Privacy.Unit.Table != "public.users" || !slices.Equal(c.Privacy.Unit.Key, []string{"id"}) {
		t.Errorf("unit: %+v", c.Privacy.Unit)
	}
	if want := []string{"public.order ${x}\nitems", "public.orders", "public.stored", "public.users", "public.visits"}; !slices.Equal(tables(c), want) {
		t.Errorf("protected: %q, want %q", tables(c), want)
	}
	if len(c.Privacy.Paths) != 1 || c.Privacy.Paths[0].Table != "public.visits" || c.Privacy.Paths[0].Columns[0] != "user_id" {
		t.Errorf("paths: %+v", c.Privacy.Paths)
	}
	f := c.Claims.Functions
	if len(f) != 4 || f[0].Name != "anon_count" || f[1].Name != "anon_sum_with_bounds" || f[1].Epsilon != -1 || f[2].Name != "dp_count" || f[2].Epsilon != 2 || f[2].Delta != 3 || f[3].Name != "dp_sum" || f[3].Epsilon != -1 {
		t.Errorf("functions: %+v", f)
	}
	for _, want := range []string{`# safe_functions: ["noisy"]`, "# public: [public.products, public.shops]", "not audited (1 table): public.settings\n", "its name is one for persons; 3 tables", "lack a copy: public.above, public.noisy_count\n"} {
		if !strings.Contains(file, want) {
			t.Errorf("no %q in\n%s", want, file)
		}
	}
	if password := pgtest.Connect(t, dsn).Config().Password; strings.Contains(file+sql, password) {
		t.Error("the password of --dsn is in the output")
	}
}

// TestEngine: the file for an engine with a port of its own names it, and a second instance beside the copies.
func TestEngine(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	pgtest.Exec(t, dsn, "CREATE TABLE users (id int PRIMARY KEY)")
	file, _, err := draft.Make(t.Context(), dsn, draft.Options{Engine: "postgres://analyst:secret@10.0.0.5:7431/shop"})
	if err != nil {
		t.Fatal(err)
	}
	c, err := config.Parse("dpwatch.yaml", []byte(file), func(string) string { return "" })
	if err != nil {
		t.Fatalf("%v\n%s", err, file)
	}
	if c.Proxy.Upstream.String() != "10.0.0.5:7431" || len(c.Shadow.Engine.DSN) != 1 || strings.Contains(file, "secret") {
		t.Errorf("upstream %s, engines %d\n%s", c.Proxy.Upstream, len(c.Shadow.Engine.DSN), file)
	}
	if got, want := c.Shadow.Engine.DSN[0].Reveal(), "host='10.0.0.5' port=7432 dbname='shop' user='analyst'"; got != want {
		t.Errorf("the second instance is %q, want %q", got, want)
	}
	if _, _, err := draft.Make(t.Context(), dsn, draft.Options{Engine: "::"}); err == nil || !strings.HasPrefix(err.Error(), "--engine ") {
		t.Error(err)
	}
}

// TestSQL runs the SQL and uses the roles: that of the source reads the protected tables and no other.
func TestSQL(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	pgtest.Exec(t, dsn, "CREATE SCHEMA \"my app\"; CREATE TABLE \"my app\".patients (id serial PRIMARY KEY); CREATE TABLE \"my app\".other (x int)")
	c, _, sql := parsed(t, dsn, "")
	for _, name := range []string{"replay", "owner", "copy"} {
		sql = strings.ReplaceAll(sql, ":'"+name+"'", "'secret'")
	}
	conn := pgtest.Connect(t, dsn)
	shadow := pgx.Identifier{conn.Config().Database + "_shadow"}.Sanitize()
	t.Cleanup(func() {
		pgtest.Exec(t, dsn, "DROP DATABASE IF EXISTS "+shadow+" WITH (FORCE)")
		pgtest.Exec(t, dsn, "DROP OWNED BY dpwatch_replay, dpwatch_owner, dpwatch_copy", "DROP ROLE dpwatch_replay, dpwatch_owner, dpwatch_copy")
	})
	for _, statement := range strings.Split(sql, ";\n") {
		if _, rest, ok := strings.Cut(statement, "\\connect "); ok { // a command of psql
			_, statement, _ = strings.Cut(rest, "\n")
			conn = pgtest.Connect(t, strings.Replace(dsn, "/"+conn.Config().Database+"?", "/"+conn.Config().Database+"_shadow?", 1))
		}
		if _, err := conn.Exec(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	source := pgtest.Connect(t, c.Neighbours.Source.Reveal()+" password=secret")
	if _, err := source.Exec(t.Context(), `SELECT FROM "my app".patients`); err != nil {
		t.Error(err)
	}
	if _, err := source.Exec(t.Context(), `SELECT FROM "my app".other`); err == nil {
		t.Error("the role of the source reads a table that is not protected")
	}
	if _, err := conn.Exec(t.Context(), "CREATE SCHEMA dp; CREATE FUNCTION dp.one() RETURNS int LANGUAGE sql AS 'SELECT 1'; CREATE SCHEMA ref; CREATE TABLE ref.shops (id int)"); err != nil {
		t.Fatal(err)
	}
	pgtest.Exec(t, c.Neighbours.Target.Reveal()+" password=secret", "CREATE SCHEMA d0", "SELECT dp.one() FROM ref.shops")
	pgtest.Exec(t, c.Shadow.DSN.Reveal()+" password=secret", "SELECT dp.one() FROM ref.shops")
	if _, err := pgtest.Connect(t, c.Shadow.DSN.Reveal()+" password=secret").Exec(t.Context(), "CREATE SCHEMA d1"); err == nil {
		t.Error("the role of replays can create schemas")
	}
}

func TestNoUnit(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	pgtest.Exec(t, dsn, "CREATE TABLE devices (serial text PRIMARY KEY); CREATE TABLE readings (serial text, value float8); CREATE TABLE log (at date)",
		"INSERT INTO devices SELECT md5(i::text) FROM generate_series(1, 9) i; INSERT INTO readings SELECT serial FROM devices")
	if _, _, err := draft.Make(t.Context(), dsn, draft.Options{}); err == nil || !strings.Contains(err.Error(), "--unit schema.table") {
		t.Errorf("no foreign keys and no names: %v", err)
	}
	if _, _, err := draft.Make(t.Context(), dsn, draft.Options{Unit: "public.log"}); err == nil || !strings.Contains(err.Error(), "with a primary key") {
		t.Errorf("a unit without a key: %v", err)
	}
	c, _, _ := parsed(t, dsn, "public.devices")
	if want := []string{"public.devices", "public.readings"}; !slices.Equal(tables(c), want) || len(c.Privacy.Paths) != 1 {
		t.Errorf("protected: %q, paths %+v", tables(c), c.Privacy.Paths)
	}
	if _, _, err := draft.Make(t.Context(), pgtest.Database(t), draft.Options{}); err == nil || !strings.Contains(err.Error(), "no tables") {
		t.Errorf("an empty database: %v", err)
	}
	if _, _, err := draft.Make(t.Context(), "nonsense", draft.Options{}); err == nil {
		t.Error("no connection string")
	}
}
