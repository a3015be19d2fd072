package main

import (
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
	"github.com/dpwatch/dpwatch/internal/preflight"
)

// upstreamOf returns host:port of a connection string.
func upstreamOf(t *testing.T, dsn string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	return u.Host
}

// checksOf runs doctor -o json.
func checksOf(t *testing.T, code int, path string) []preflight.Check {
	t.Helper()
	r := call(t, "", "doctor", "-o", "json", "--config", path)
	r.want(t, code)
	var checks []preflight.Check
	if err := json.Unmarshal([]byte(r.stdout), &checks); err != nil {
		t.Fatalf("%v\n%s", err, r.stdout)
	}
	return checks
}

// find returns the check with this name whose object or message contains a text.
func find(checks []preflight.Check, name, text string) preflight.Check {
	for _, c := range checks {
		if c.Name == name && strings.Contains(c.Object+": "+c.Message, text) {
			return c
		}
	}
	return preflight.Check{}
}

// TestCheckConnectSound: a set-up with exactly the necessary rights has no fault and no warning but one. The grants printed for
// a role without rights give such a set-up.
func TestCheckConnectSound(t *testing.T) {
	t.Parallel()
	dsn := copies(t)
	pgtest.Exec(t, dsn, `CREATE TABLE people AS TABLE d0.people; CREATE SCHEMA ref; CREATE TABLE ref.shops AS SELECT 1 AS id;
		CREATE SCHEMA "My dp"; CREATE FUNCTION "My dp"."Noise"(x float8, epsilon float8) RETURNS float8 LANGUAGE sql VOLATILE AS 'SELECT x';
		CREATE SCHEMA types; CREATE TYPE types.kind AS ENUM ('x'); ALTER TABLE people ADD kind types.kind; ALTER TABLE d0.people ADD kind types.kind; ALTER TABLE d1.people ADD kind types.kind`,
		"REVOKE ALL ON DATABASE "+pgtest.Connect(t, dsn).Config().Database+" FROM PUBLIC", "REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA public FROM PUBLIC")
	replayer := replayRole(t, dsn)
	path := file(t, "dpwatch.yaml", fmt.Sprintf(`
proxy: {listen: 127.0.0.1:0, upstream: %q}
shadow: {dsn: %q}
privacy: {protected: [public.people], public: [ref.shops], catalog: %q}
claims: {functions: [{name: noisy, epsilon: -1}, {name: My dp.Noise, epsilon: 2}]}
ledger: {dsn: %q}
`, upstreamOf(t, dsn), replayer, dsn, dsn))
	said := ""
	for round := 0; ; round++ {
		r := call(t, "", "doctor", "--config", path)
		said += r.stdout
		if r.code == exitDone && !strings.Contains(r.stdout, "GRANT") {
			break
		}
		granted := 0
		for line := range strings.Lines(r.stdout) {
			if strings.HasPrefix(line, "GRANT ") {
				pgtest.Exec(t, dsn, line)
				granted++
			}
		}
		if granted == 0 || round == 3 {
			t.Fatalf("round %d:\n%s%s", round, r.stdout, r.stderr)
		}
	}
	for _, want := range []string{"My dp.Noise: the role may not use its schema", `GRANT USAGE ON SCHEMA "My dp" TO`, "to grant in database test_", `GRANT USAGE ON SCHEMA "types" TO`} {
		if !strings.Contains(said, want) {
			t.Errorf("nothing says %q:\n%s", want, said)
		}
	}
	if strings.Contains(said, `EXECUTE ON FUNCTION "My dp"`) {
		t.Errorf("a privilege that is not missing:\n%s", said)
	}
	call(t, "", "doctor", "--config", path).want(t, exitDone, "no faults")
	for _, c := range checksOf(t, exitDone, path) {
		if c.Object != "its server" && (c.Status == preflight.Fault || c.Status == preflight.Warning) { // the server is that of the clients
			t.Errorf("%+v", c)
		}
	}
}

// TestCheckConnectFaults: every fault is reported in one run.
func TestCheckConnectFaults(t *testing.T) {
	t.Parallel()
	dsn := copies(t)
	pgtest.Exec(t, dsn, `CREATE TABLE people AS TABLE d0.people; ALTER TABLE people ADD COLUMN newer int;
		CREATE SCHEMA d2; CREATE TABLE d2.people AS SELECT id::bigint, grp FROM d0.people;
		CREATE SCHEMA dp; CREATE FUNCTION dp.hidden_sum(x float8, epsilon float8) RETURNS float8 LANGUAGE sql STABLE AS 'SELECT x';
		CREATE FUNCTION steady(x float8) RETURNS float8 LANGUAGE sql IMMUTABLE AS 'SELECT x + random()';
		CREATE FUNCTION owned(x float8, epsilon float8) RETURNS float8 LANGUAGE sql VOLATILE SECURITY DEFINER AS 'SELECT x';
		CREATE FUNCTION mighty() RETURNS int LANGUAGE sql SECURITY DEFINER AS 'SELECT 1';
		CREATE EXTENSION dblink;
		CREATE FUNCTION total_step(float8, float8, float8) RETURNS float8 LANGUAGE sql AS 'SELECT $1 + $2';
		CREATE AGGREGATE total(float8, float8) (SFUNC = total_step, STYPE = float8);
		ALTER TABLE d0.people ENABLE ROW LEVEL SECURITY; ALTER TABLE d1.people ENABLE ROW LEVEL SECURITY`)
	replayer := replayRole(t, dsn, "d0", "d1", "d2")
	pgtest.Exec(t, dsn, "ALTER FUNCTION mighty() OWNER TO postgres; ALTER FUNCTION owned(float8, float8) OWNER TO postgres; REVOKE SELECT ON d2.people FROM "+pgtest.Connect(t, replayer).Config().User,
		"REVOKE TEMPORARY ON DATABASE "+pgtest.Connect(t, dsn).Config().Database+" FROM PUBLIC")
	busy, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	path := file(t, "dpwatch.yaml", fmt.Sprintf(`
proxy: {listen: %q, upstream: 127.0.0.1:1}
shadow: {dsn: %q, d1: [d1, d2, d3], search_path: [public, nosuch]}
privacy: {protected: [public.people, public.orders], public: [ref.shops], catalog: %q}
claims: {functions: [{name: nosy, epsilon: -1}, {name: hidden_sum, epsilon: -1}, {name: total, epsilon: 2}, {name: noisy, epsilon: 3}, {name: owned, epsilon: 2}, {name: dp.nothing, epsilon: 1}], safe_functions: [steady]}
`, busy.Addr(), replayer, dsn))
	checks := checksOf(t, exitFailure, path)
	for _, tc := range []struct {
		status          preflight.Status
		name, text, fix string
	}{
		{preflight.Fault, "proxy.listen", "address already in use", "choose another address"},
		{preflight.Fault, "proxy.upstream", "127.0.0.1:1", "start the engine"},
		{preflight.OK, "shadow.dsn", "connects", ""},
		{preflight.Fault, "copies", "d3: the schema does not exist", "neighbours create"},
		{preflight.Fault, "copies", "d2.people: its columns differ from d0.people (id bigint, grp integer against id integer, grp integer)", "create the copies again"},
		{preflight.Fault, "copies", "d2.people: the role may not read it", `GRANT SELECT ON ALL TABLES IN SCHEMA "d2" TO`},
		{preflight.Fault, "copies", "d0.orders: does not exist", "neighbours create --replace"},
		{preflight.Fault, "copies", "d1.people: row security is on", `ALTER TABLE "d1"."people" DISABLE ROW LEVEL SECURITY`},
		{preflight.Fault, "copies", "d0.people: its columns differ from those of public.people in the engine's database", "neighbours create --replace"},
		{preflight.Fault, "privacy.public", "ref.shops: does not exist in the shadow database", "create the table there"},
		{preflight.Fault, "privacy.public", "ref.shops: does not exist in the engine's database", "correct the name"},
		{preflight.Fault, "privacy.protected", "public.orders: does not exist in the engine's database", "correct the name"},
		{preflight.Fault, "shadow.search_path", "nosuch: the schema does not exist", "shadow.search_path"},
		{preflight.Fault, "claims.functions", "nosy: does not exist in the shadow database", "did you mean noisy?"},
		{preflight.Fault, "claims.functions", "nosy: does not exist in the engine's database", "correct the name"},
		{preflight.Fault, "claims.functions", "hidden_sum: exists in schema dp of the shadow database, which is not in the search path (public)", "shadow.search_path"},
		{preflight.Fault, "claims.functions", "noisy: epsilon is argument 3, and the function has at most 2", "correct the position"},
		{preflight.OK, "claims.functions", "total: found as public.total(double precision,double precision)", ""},
		{preflight.Fault, "claims.functions", "dp.nothing: does not exist", "install"},
		{preflight.Warning, "volatility", "public.steady(double precision): calls random() and is not declared VOLATILE", "ALTER FUNCTION"},
		{preflight.Warning, "audit.hoist", "the role may not create them", "GRANT TEMPORARY ON DATABASE"},
		{preflight.Warning, "security definer", "public.mighty(): the role may call", "REVOKE EXECUTE ON ROUTINE public.mighty() FROM PUBLIC, "},
		{preflight.Warning, "security definer", "public.owned(double precision,double precision): a function of claims", "ALTER ROUTINE public.owned(double precision,double precision) SECURITY INVOKER"},
		{preflight.Warning, "foreign data", "public.dblink(text,text)", "REVOKE"},
		{preflight.Unchecked, "neighbours", "whether each pair differs by exactly one unit", ""},
	} {
		if c := find(checks, tc.name, tc.text); c.Status != tc.status || !strings.Contains(c.Fix, tc.fix) {
			t.Errorf("%s %s %q: %+v", tc.status, tc.name, tc.text, c)
		}
	}
	for _, c := range checks {
		if c.Name == "volatility" && strings.HasPrefix(c.Object, "public.total") {
			t.Errorf("an aggregate, which has no volatility: %+v", c)
		}
		if t.Failed() {
			t.Logf("%+v", c)
		}
	}
	text := call(t, "", "doctor", "--config", path)
	text.want(t, exitFailure, "FAULT", "-- missing rights", "faults, ")
	if strings.Contains(text.stdout, `SCHEMA "d0"`) {
		t.Errorf("a grant that is not missing:\n%s", text.stdout)
	}
}

// TestCheckConnectDead: a failed connection is a fault, and the checks that depend on it are listed as unchecked.
func TestCheckConnectDead(t *testing.T) {
	t.Parallel()
	dsn := copies(t)
	replayer := replayRole(t, dsn)
	role := pgtest.Connect(t, replayer).Config().User
	pgtest.Exec(t, dsn, "ALTER ROLE "+role+" NOLOGIN")
	path := file(t, "dpwatch.yaml", fmt.Sprintf(`
proxy: {listen: 127.0.0.1:0, upstream: %q}
shadow: {dsn: %q}
privacy: {protected: [public.people], catalog: %q, unit: {table: public.people, key: id}}
neighbours: {source: "postgres://u@127.0.0.1:1/shop", target: %q, choose: [{rule: random}]}
`, upstreamOf(t, dsn), replayer, strings.Replace(dsn, "//postgres:", "//postgres:wrong", 1), dsn))
	checks := checksOf(t, exitFailure, path)
	for _, tc := range []struct {
		status          preflight.Status
		name, text, fix string
	}{
		{preflight.OK, "proxy.upstream", "answers", ""},
		{preflight.Fault, "shadow.dsn", "is not permitted to log in", "LOGIN"},
		{preflight.Unchecked, "shadow database", "the replay role cannot connect", ""},
		{preflight.Unchecked, "replay role", "cannot be queried", ""},
		{preflight.Fault, "privacy.catalog", "password authentication failed", "correct the user or the password"},
		{preflight.Fault, "neighbours.source", "127.0.0.1:1", "start the server"},
		{preflight.Fault, "neighbours", "holds no set of neighbours", "neighbours create"},
	} {
		if c := find(checks, tc.name, tc.text); c.Status != tc.status || !strings.Contains(c.Fix, tc.fix) {
			t.Errorf("%s %s %q: %+v of %+v", tc.status, tc.name, tc.text, c, checks)
		}
	}
	for _, c := range checks {
		if strings.Contains(fmt.Sprint(c), "wrong") || strings.Contains(fmt.Sprint(c), "secret") {
			t.Errorf("a password: %+v", c)
		}
	}
}

// TestCheckConnectPath: a function outside the configured path is a fault, unless sessions find it through the path of
// their role.
func TestCheckConnectPath(t *testing.T) {
	t.Parallel()
	dsn := copies(t)
	pgtest.Exec(t, dsn, `CREATE TABLE people AS TABLE d0.people; CREATE SCHEMA dp;
		CREATE FUNCTION dp.hidden_sum(x float8, epsilon float8) RETURNS float8 LANGUAGE sql VOLATILE AS 'SELECT x'`)
	const want = "hidden_sum: exists in schema dp of the shadow database, which is not in the search path (public)"
	for _, catalog := range []string{"", dsn} {
		path := file(t, "dpwatch.yaml", fmt.Sprintf(`
proxy: {listen: 127.0.0.1:0, upstream: %q}
shadow: {dsn: %q}
privacy: {protected: [public.people], catalog: %q}
claims: {functions: [{name: hidden_sum, epsilon: -1}]}
`, upstreamOf(t, dsn), dsn, catalog))
		if c := find(checksOf(t, exitFailure, path), "claims.functions", want); c.Status != preflight.Fault {
			t.Errorf("catalog %t: %+v", catalog != "", c)
		}
		if catalog == "" {
			continue
		}
		pgtest.Exec(t, dsn, "ALTER DATABASE "+pgtest.Connect(t, dsn).Config().Database+" SET search_path TO public, dp")
		if c := find(checksOf(t, exitDone, path), "claims.functions", want); c.Status != preflight.Warning {
			t.Errorf("with a path of the database's own: %+v", c)
		}
	}
}

// TestCheckFileFaults: faults of the file are listed as checks, too.
func TestCheckFileFaults(t *testing.T) {
	t.Parallel()
	path := file(t, "bad.yaml", "proxy: {lisen: 1}\nprivacy: {protected: [public.users]}\n")
	checks := checksOf(t, exitFailure, path)
	if c := find(checks, "configuration", path+":1"); c.Status != preflight.Fault || !strings.Contains(c.Message, `did you mean "listen"?`) {
		t.Errorf("%+v", checks)
	}
	call(t, "", "config", "check", "--config", t.TempDir()).want(t, exitFailure, "is a directory")
}

// TestCheckConnectEngine: engines beside the database are checked, and functions belong to them.
func TestCheckConnectEngine(t *testing.T) {
	t.Parallel()
	dsn := copies(t)
	mute, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer mute.Close()
	go func() {
		for {
			conn, err := mute.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write([]byte("HTTP/1.1 400 Bad Request\r\n"))
			_ = conn.Close()
		}
	}()
	path := file(t, "dpwatch.yaml", fmt.Sprintf(`
proxy: {listen: 127.0.0.1:0, upstream: %q}
shadow: {dsn: %q, engine: {dsn: [%q, "postgres://u@127.0.0.1:1/x"]}}
privacy: {protected: [public.people]}
claims: {functions: [{name: nosy, epsilon: -1}]}
`, mute.Addr(), dsn, dsn))
	checks := checksOf(t, exitFailure, path)
	for _, tc := range []struct {
		status     preflight.Status
		name, text string
	}{
		{preflight.Fault, "proxy.upstream", "does not respond like a PostgreSQL server"},
		{preflight.OK, "shadow.engine.dsn", "engine of d0: accepts sessions"},
		{preflight.Fault, "shadow.engine.dsn", "engine of d1: engine x at 127.0.0.1:1"},
		{preflight.Unchecked, "shadow.engine.dsn", "which copies it reads"},
		{preflight.Unchecked, "claims.functions", "its functions are its own"},
		{preflight.Unchecked, "privacy.catalog", "not configured"},
		{preflight.Warning, "replay role", "is a SUPERUSER"},
	} {
		if c := find(checks, tc.name, tc.text); c.Status != tc.status {
			t.Errorf("%s %s %q: %+v of %+v", tc.status, tc.name, tc.text, c, checks)
		}
	}
}
