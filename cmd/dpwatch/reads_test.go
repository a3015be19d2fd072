package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
	"github.com/dpwatch/dpwatch/internal/preflight"
)

// hiddenSQL is a function that returns the exact count of the original, whose name is in no literal of its body.
const hiddenSQL = `CREATE FUNCTION %s(e float8) RETURNS float8 LANGUAGE plpgsql VOLATILE AS $$ DECLARE n float8;
	BEGIN EXECUTE 'SELECT count(*) FROM pub' || 'lic.peo' || 'ple' INTO n; RETURN n + random() / 1e9; END $$`

// TestAuditReadsTheCopies: an audit whose trials read the original, or one copy in both worlds, has no verdict, and says
// what was read.
func TestAuditReadsTheCopies(t *testing.T) {
	t.Parallel()
	dsn := copies(t)
	pgtest.Exec(t, dsn, "CREATE TABLE people AS TABLE d0.people", fmt.Sprintf(hiddenSQL, "hidden"))
	path := func(schema string) []string { return []string{"--engine", dsn + "&search_path=" + schema + ",public"} }
	count := []string{"--sql", "SELECT count(*) + noisy(0, 1e-9) AS n FROM people"}
	for _, c := range []struct {
		name string
		args []string
		want string
	}{
		{"a function reads the original", []string{"--sql", "SELECT hidden(1) + 0 * count(*) AS n FROM people"}, "those on D0 (schema d0) read public.people, the original of a copy"},
		{"engines read the original", slices.Concat(count, path("public"), path("public")), "read public.people, the original of a copy: let its source find the tables in d0"},
		{"engines read one copy", slices.Concat(count, path("d0"), path("d0")), "read d0.people, a copy of another world: let its source find the tables in d1"},
		{"an engine for all worlds, and a function", []string{"--engine", dsn, "--sql", "SELECT hidden(1) + 0 * count(*) AS n FROM people"}, "read public.people, the original of a copy"},
		{"no table is read", []string{"--sql", "SELECT noisy(1, 1) AS n FROM people WHERE false"}, "(schema d0) read no table"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			args := append([]string{"audit", "--dsn", dsn, "--d0", "d0", "--d1", "d1", "--epsilon", "1", "--max-trials", "300"}, c.args...)
			call(t, "", args...).want(t, exitInconclusive, "Inconclusive. Reason: trials do not read the copies: ", c.want)
			r := call(t, "", append(args, "-o", "json")...)
			r.want(t, exitInconclusive)
			report := r.object(t)
			checkContract(t, report)
			if reason, _ := report["reason"].(string); report["verdict"] != "inconclusive" || !strings.Contains(reason, c.want) {
				t.Errorf("%v, %q; want inconclusive, %q", report["verdict"], reason, c.want)
			}
		})
	}
}

// TestAuditShowsReads: the result of an audit has the tables that trials read, and what could not be verified.
func TestAuditShowsReads(t *testing.T) {
	t.Parallel()
	dsn := copies(t)
	far := copies(t) // another database with copies of the same names
	pgtest.Exec(t, dsn, "CREATE TABLE daily AS SELECT 1000 AS n; CREATE FUNCTION rolled() RETURNS float8 LANGUAGE sql STABLE AS 'SELECT n FROM public.daily'",
		"CREATE FUNCTION stored() RETURNS float8 LANGUAGE plpgsql STABLE AS 'BEGIN RETURN current_setting(''app.total'', true)::float8; END'")
	for _, c := range []struct {
		name, unverified, verdict string
		beside                    string
		args                      []string
		code                      int
	}{
		{name: "tables", verdict: "no_evidence"},
		{name: "an engine", args: []string{"--engine", dsn}, verdict: "no_evidence"},
		{name: "an engine elsewhere", args: []string{"--engine", far}, unverified: "is another database than that of shadow.dsn", verdict: "no_evidence"},
		{
			name: "an engine elsewhere, and the same answers", unverified: "is another database than that of shadow.dsn", verdict: "inconclusive", code: exitInconclusive,
			args: []string{"--engine", far, "--sql", "SELECT noisy(count(*), 1) AS n FROM people WHERE id < 50"},
		},
		{
			name: "a table besides", beside: "trials read public.daily, which is none of their copies, not listed in privacy.public, and no extension's", verdict: "inconclusive", code: exitInconclusive,
			args: []string{"--sql", "SELECT noisy(count(*), 0.5) + rolled() AS n FROM people"},
		},
		{
			name: "a setting besides", beside: "function public.stored reads the setting app.total", verdict: "inconclusive", code: exitInconclusive,
			args: []string{"--sql", "SELECT noisy(count(*), 0.5) + coalesce(stored(), 0) AS n FROM people"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			args := append([]string{"audit", "--dsn", dsn, "--d0", "d0", "--d1", "d1", "--epsilon", "4", "--max-trials", "1000", "--confidence", "0.999999", "-o", "json"}, c.args...)
			if !slices.Contains(args, "--sql") {
				args = append(args, "--sql", "SELECT noisy(count(*), 0.5) AS n FROM people")
			}
			r := call(t, "", args...)
			r.want(t, c.code)
			var report struct {
				Verdict, Reason string
				Warnings        []string
				Reads           struct {
					Tables     map[string][]string
					Unverified string
					Beside     []string
				}
			}
			if err := json.Unmarshal([]byte(r.stdout), &report); err != nil {
				t.Fatal(err)
			}
			checkContract(t, r.object(t))
			if !slices.Contains(report.Reads.Tables["d0"], "d0.people") || !slices.Contains(report.Reads.Tables["d1"], "d1.people") {
				t.Errorf("tables %v", report.Reads.Tables)
			}
			if report.Verdict != c.verdict || !strings.Contains(report.Reason, c.unverified) || !strings.Contains(report.Reason, c.beside) {
				t.Errorf("%s, %q; want %s, %q", report.Verdict, report.Reason, c.verdict, c.unverified+c.beside)
			}
			if beside := strings.Join(report.Reads.Beside, "; "); beside != c.beside {
				t.Errorf("beside %q, want %q", beside, c.beside)
			}
			warned := slices.ContainsFunc(report.Warnings, func(w string) bool { return strings.HasPrefix(w, "not verified: ") })
			if !strings.Contains(report.Reads.Unverified, c.unverified) || (report.Reads.Unverified != "") != (c.unverified != "") || warned != (c.unverified+c.beside != "") {
				t.Errorf("unverified %q, warnings %q; want %q", report.Reads.Unverified, report.Warnings, c.unverified)
			}
		})
	}
}

// TestRunReadsTheCopies: the same through the proxy, and without effect on other audits.
func TestRunReadsTheCopies(t *testing.T) {
	t.Parallel()
	s := startSidecar(t, "")
	conn := s.connect(t)
	exec0(t, pgtest.Connect(t, s.direct), fmt.Sprintf(hiddenSQL, "noisy"))
	exec0(t, conn, "SELECT noisy(1) + 0 * count(*) FROM people /*dp_epsilon='1'*/")
	exec0(t, conn, "SELECT noisy(count(*), 0.5) FROM people /*dp_epsilon='0.2'*/")
	var st adminStatus
	s.until(t, "verdicts", func() bool {
		st = s.status(t)
		return len(st.Audit.Audits) == 2 && st.Audit.Audits[0].State == "decided" && st.Audit.Audits[1].State == "decided"
	})
	const want = "trials do not read the copies: those on D0 (schema d0) read public.people, the original of a copy"
	if r := st.Audit.Audits[0].Report; r.Verdict != "inconclusive" || !strings.Contains(r.Reason, want) {
		t.Errorf("%s, %q; want inconclusive, %q", r.Verdict, r.Reason, want)
	}
	if r := st.Audit.Audits[1].Report; r.Verdict != "violation" {
		t.Errorf("the other audit: %s, %q; want a violation", r.Verdict, r.Reason)
	}
	s.until(t, "the log has the reason", func() bool { return strings.Contains(s.log.String(), want) })
}

// TestRightsOnOriginals: a replay role that may read an original is a fault, and audits do not begin until the statement
// that doctor prints was executed.
func TestRightsOnOriginals(t *testing.T) {
	t.Parallel()
	dsn := copies(t)
	pgtest.Exec(t, dsn, "CREATE TABLE people AS TABLE d0.people; GRANT SELECT ON people TO PUBLIC")
	role := replayRole(t, dsn, "d0", "d1")
	cfg, err := pgx.ParseConfig(role)
	if err != nil {
		t.Fatal(err)
	}
	path := file(t, "dpwatch.yaml", fmt.Sprintf(`
proxy: {listen: 127.0.0.1:0, upstream: %q}
shadow: {dsn: %q}
privacy: {protected: [public.people]}
claims: {safe_functions: [noisy], default: {epsilon: 2}}
ledger: {dsn: memory}
`, upstreamOf(t, dsn), role))
	const what, fix = "may read 1 original(s) of the copies, as PUBLIC may, public.people one of them", "REVOKE SELECT ON TABLE public.people FROM PUBLIC"
	if c := find(checksOf(t, exitFailure, path), "replay role", what); c.Status != preflight.Fault || c.Fix != fix {
		t.Errorf("%+v, want a fault, %s", c, fix)
	}
	audit := []string{"audit", "--config", path, "--epsilon", "2", "--max-trials", "400", "--confidence", "0.999999", "--sql", "SELECT noisy(count(*), 1) FROM people"}
	call(t, "", audit...).want(t, exitFailure, "the replay role "+cfg.User+" "+what, fix)
	pgtest.Exec(t, dsn, fix)
	call(t, "", audit...).want(t, exitDone)
	if c := find(checksOf(t, exitDone, path), "replay role", "none beyond reading the copies"); c.Status != preflight.OK {
		t.Errorf("after the REVOKE: %+v", c)
	}
}

// TestRunWaitsForRights: audits do not begin while the replay role may read an original, and go on when it may not.
func TestRunWaitsForRights(t *testing.T) {
	t.Parallel()
	s := startSidecar(t, "LEDGER")
	direct, conn := pgtest.Connect(t, s.direct), s.connect(t)
	exec0(t, direct, "GRANT SELECT ON people TO PUBLIC")
	exec0(t, conn, "SELECT noisy(count(*), 0.5) FROM people /*dp_epsilon='0.2'*/")
	const fix = "REVOKE SELECT ON TABLE public.people FROM PUBLIC"
	var st adminStatus
	s.until(t, "the fault", func() bool {
		st = s.status(t)
		return len(st.Audit.Audits) == 1 && strings.Contains(st.Audit.Audits[0].Trouble, fix)
	})
	if a := st.Audit.Audits[0]; a.State == "decided" || a.Report.Verdict != "" && a.Report.Verdict != "inconclusive" {
		t.Errorf("%+v; want no verdict", a)
	}
	exec0(t, direct, fix)
	s.until(t, "the verdict", func() bool {
		st = s.status(t)
		return st.Audit.Audits[0].State == "decided" && st.Audit.Audits[0].Report.Verdict == "violation"
	})
}

// TestAuditForeignCode: a function in a language that is not analysed is replayed by its copies in the neighbours'
// schemas, and refused without them. The language here is PL/pgSQL under another name.
func TestAuditForeignCode(t *testing.T) {
	t.Parallel()
	dsn := copies(t)
	const function = `CREATE FUNCTION %[1]s.tally(e float8) RETURNS float8 LANGUAGE plother VOLATILE AS $$ /* spi_exec_query */
		DECLARE n float8; BEGIN EXECUTE 'SELECT count(*) FROM %[1]s.people' INTO n; RETURN public.noisy(n, 0.2 / e); END $$;`
	pgtest.Exec(t, dsn, "CREATE TABLE people AS TABLE d0.people; CREATE LANGUAGE plother HANDLER plpgsql_call_handler",
		fmt.Sprintf(function, "public"), fmt.Sprintf(function, "d0"), fmt.Sprintf(function, "d1"))
	path := file(t, "dpwatch.yaml", fmt.Sprintf(`
proxy: {listen: 127.0.0.1:0, upstream: %q}
shadow: {dsn: %q}
privacy: {protected: [public.people], catalog: %q}
claims: {functions: [{name: tally, epsilon: -1}], safe_functions: [noisy]}
ledger: {dsn: memory}
`, upstreamOf(t, dsn), dsn, dsn))
	audit := []string{"audit", "--config", path, "--sql", "SELECT tally(0.5)", "-o", "json"}
	r := call(t, "", audit...)
	r.want(t, exitViolation)
	report := r.object(t)
	checkContract(t, report)
	if reads := fmt.Sprint(report["reads"]); !strings.HasSuffix(reads, "tables:map[d0:[d0.people] d1:[d1.people]] unverified:]") || !strings.Contains(reads, "function d0.tally is written in plother") {
		t.Errorf("reads %s", reads)
	}
	pgtest.Exec(t, dsn, "DROP FUNCTION d1.tally")
	call(t, "", audit...).want(t, exitFailure, "no_copy", "schema d1 has no copy of it", "let it take arrays, and let an SQL function, or the statement, read the tables for it")
}
