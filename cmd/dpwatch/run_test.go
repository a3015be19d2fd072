package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/dpwatch/dpwatch/config"
	"github.com/dpwatch/dpwatch/internal/eventually"
	"github.com/dpwatch/dpwatch/internal/longtest"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
)

func itoa(n int) string { return strconv.Itoa(n) }

func atoi(s string) int {
	n, _ := strconv.Atoi(s) // 0 if s is not a number
	return n
}

// sidecar is dpwatch run in front of a database that is both engine and shadow: public.people is the data, d0 and d1
// are the copies.
type sidecar struct {
	*process
	addr, admin string
	direct      string   // the DSN without the proxy
	admins      []string // all admin addresses
	environ     []string // additional variables
	token       string   // of the admin port; "" = none
	viewer      string   // the token of a viewer
	replay      string   // the connection string of shadow.dsn
	config      string   // path of the configuration
	flags       []string // additional ones of run
}

// startSidecar takes keywords for special settings, and additional keys of the proxy's section. Its sessions drain for
// longer than any test takes.
func startSidecar(t *testing.T, extra string, proxy ...string) *sidecar {
	t.Helper()
	s := &sidecar{direct: copies(t)}
	cfg, err := pgx.ParseConfig(s.direct)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.ConnectConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(t.Context(), `CREATE TABLE people AS SELECT * FROM d0.people; CREATE TABLE other (x int)`); err != nil {
		t.Fatal(err)
	}
	shadow := s.direct
	if strings.Contains(extra, "BROKEN SHADOW") {
		shadow = "postgres://nobody@127.0.0.1:1/x"
	}
	admin := "{listen: 127.0.0.1:0}"
	if strings.Contains(extra, "ADMIN TOKEN") {
		s.token = rand.Text()
		admin = fmt.Sprintf("{listen: 127.0.0.1:0, token_file: %q}", file(t, "token", s.token+"\n"))
	}
	if strings.Contains(extra, "ADMIN ROLES") {
		s.token, s.viewer = rand.Text(), rand.Text()
		admin = fmt.Sprintf("{listen: 127.0.0.1:0, token_file: %q}", file(t, "token", "auditor,operator ann "+s.token+"\nviewer "+s.viewer+"\n"))
	}
	if _, path, ok := strings.Cut(extra, "PASSWORD FILE "); ok { // half of the password comes from the environment, half from the file
		const first = "pw-in-the-environment"
		second, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		exec0(t, conn, fmt.Sprintf("CREATE ROLE with_password SUPERUSER LOGIN PASSWORD '%s%s'", first, strings.TrimSpace(string(second))))
		shadow = fmt.Sprintf("host=%s port=%d dbname=%s user=with_password password=${SHADOW_PASSWORD}${file:%s} sslmode=disable", cfg.Host, cfg.Port, cfg.Database, path)
		s.environ = []string{"SHADOW_PASSWORD=" + first, "PGOPTIONS=-c work_mem=nonsense", "PGPASSWORD=" + first}
	}
	ledger, budgets := "memory", "[]"
	if strings.Contains(extra, "LEDGER") {
		ledger, budgets = s.direct, "[{name: analysts, epsilon: 0.75}]"
		if !strings.Contains(extra, "EXPOSED") {
			shadow = replayRole(t, s.direct, "d0", "d1")
		}
	}
	catalog, functions := "", ""
	if strings.Contains(extra, "CATALOG") {
		catalog = fmt.Sprintf(", catalog: %q", s.direct)
		functions = "functions: [{name: dp_noisy, epsilon: 2}], "
		exec0(t, conn, `CREATE SCHEMA marts; CREATE MATERIALIZED VIEW marts.stored AS SELECT noisy(count(*), 4) AS n FROM people;
			CREATE FUNCTION dp_noisy(value float8, epsilon float8) RETURNS float8 LANGUAGE sql VOLATILE AS 'SELECT public.noisy(value, 1 / epsilon)';
			CREATE VIEW d0.fresh AS SELECT dp_noisy(count(*), 0.01) AS n FROM d0.people; CREATE VIEW d1.fresh AS SELECT dp_noisy(count(*), 0.01) AS n FROM d1.people;
			CREATE VIEW marts.fresh AS SELECT dp_noisy(count(*), 0.01) AS n FROM people; GRANT SELECT ON d0.fresh, d1.fresh TO PUBLIC; CREATE VIEW marts.alone AS SELECT dp_noisy(count(*), 0.02) AS n FROM people`)
	}
	if _, tuning, ok := strings.Cut(extra, "TUNING "); ok {
		s.environ = append(s.environ, config.TuningVariable+"="+tuning)
	}
	s.replay = shadow
	trials := 500
	if strings.Contains(extra, "FEW TRIALS") { // verdicts do not matter
		trials = 100
	}
	if strings.Contains(extra, "OBSERVE") {
		s.flags = []string{"--observe"}
	}
	if strings.Contains(extra, "NO WORKERS") {
		s.flags = []string{"--workers", "0"}
	}
	s.run(t, file(t, "dpwatch.yaml", fmt.Sprintf(`
proxy: {listen: 127.0.0.1:0, upstream: "%s:%d", drain_timeout: 1h%s}
admin: %s
shadow: {dsn: %q}
privacy: {protected: [public.people]%s}
claims: {%ssafe_functions: [noisy], trust: [comment], settings: {epsilon: dp.epsilon, delta: dp.delta}}
audit: {measure_trials: 0, max_trials: %d, confidence: 0.999999, share: 1, watch_share: 0, sequences: %t}
ledger: {dsn: %q}
budgets: %s
# %s
`, cfg.Host, cfg.Port, strings.Join(append([]string{""}, proxy...), ", "), admin, shadow, catalog, functions, trials, strings.Contains(extra, "SEQUENCES"), ledger, budgets, extra)))
	return s
}

// run starts dpwatch with a configuration and waits until it is up; the log has its addresses.
func (s *sidecar) run(t *testing.T, path string) {
	t.Helper()
	s.config = path
	s.process = startProgramWith(t, s.environ, append([]string{"run", "--config", path}, s.flags...)...)
	s.until(t, "dpwatch is up", func() bool {
		for line := range strings.Lines(s.log.String()) {
			var up struct {
				Message string `json:"msg"`
				Listen  []string
				Admin   []string
			}
			if strings.HasSuffix(line, "\n") && json.Unmarshal([]byte(line), &up) == nil && up.Message == "dpwatch is up" {
				s.addr, s.admins = up.Listen[0], up.Admin
				if len(up.Admin) > 0 {
					s.admin = up.Admin[0]
				}
				return true
			}
		}
		return false
	})
}

// dsn returns the connection string of the database through the proxy.
func (s *sidecar) dsn() string {
	return regexp.MustCompile(`@[^/]+/`).ReplaceAllString(s.direct, "@"+s.addr+"/")
}

func (s *sidecar) connect(t *testing.T) *pgx.Conn {
	t.Helper()
	conn := pgtest.Connect(t, s.dsn())
	return conn
}

func (s *sidecar) get(t *testing.T, path string) (int, string) {
	t.Helper()
	return s.ask(t, http.MethodGet, path)
}

// ask sends a request to the admin port, with the token and additional headers; Host is one of them.
func (s *sidecar) ask(t *testing.T, method, path string, header ...string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "http://"+s.admin+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if s.token != "" {
		req.Header.Set("Authorization", "Bearer "+s.token)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	if host := req.Header.Get("Host"); host != "" {
		req.Host = host
	}
	r, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, string(body)
}

// adminStatus is the part of /api/status that the tests read.
type adminStatus struct {
	Audit struct {
		Captured uint64            `json:"captured"`
		Skipped  map[string]uint64 `json:"skipped"`
		Shadow   string            `json:"shadow"`
		Pace     struct {
			Default string
			Limit   float64
			Held    string `json:"held"`
		} `json:"pace"`
		Audits []struct {
			State     string   `json:"state"`
			Trouble   string   `json:"trouble"`
			Summary   string   `json:"summary"`
			Neighbour string   `json:"neighbour"`
			Assumed   []string `json:"assumed"`
			Report    struct {
				Verdict string `json:"verdict"`
				Reason  string `json:"reason"`
				Claimed struct {
					Epsilon float64 `json:"epsilon"`
					Source  string  `json:"source"`
				} `json:"claimed"`
			} `json:"report"`
		} `json:"audits"`
	} `json:"audit"`
}

// decided waits until so many audits have a verdict.
func (s *sidecar) decided(t *testing.T, audits int) (v adminStatus) {
	t.Helper()
	s.until(t, "every verdict", func() bool {
		v = s.status(t)
		n := 0
		for _, a := range v.Audit.Audits {
			if a.State == "decided" {
				n++
			}
		}
		return n == audits
	})
	return v
}

func (s *sidecar) status(t *testing.T) adminStatus {
	t.Helper()
	_, body := s.get(t, "/api/status")
	var v adminStatus
	if err := json.Unmarshal([]byte(body), &v); err != nil {
		t.Fatalf("%v\n%s", err, body)
	}
	return v
}

func exec0(t *testing.T, conn *pgx.Conn, sql string, args ...any) {
	t.Helper()
	if _, err := conn.Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

// Replays are paused and resumed by the API and by signals, also in a restarted auditor; capture continues meanwhile.
func TestRunPause(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	s := startSidecar(t, "ADMIN TOKEN")
	post := func(path string, header ...string) int {
		t.Helper()
		code, _ := s.ask(t, http.MethodPost, path, header...)
		return code
	}
	if code := post("/api/pause", "Sec-Fetch-Site", "cross-site"); code != http.StatusForbidden {
		t.Errorf("another site's page may pause: %d", code)
	}
	if code := post("/api/pause"); code != http.StatusNoContent {
		t.Fatalf("pause: %d", code)
	}
	held := func(want string) func() bool { return func() bool { return s.status(t).Audit.Pace.Held == want } }
	s.until(t, "paused", held("paused"))
	exec0(t, s.connect(t), "SELECT noisy(count(*), 0.5) FROM people /*dp_epsilon='0.2'*/")
	s.until(t, "captured while paused", func() bool { return len(s.status(t).Audit.Audits) == 1 })
	if st := s.status(t).Audit.Audits[0]; st.State == "decided" {
		t.Errorf("decided while paused: %+v", st)
	}
	if _, metrics := s.get(t, "/metrics"); !strings.Contains(metrics, "dpwatch_replays_paused 1") {
		t.Error("the pause is not in the metrics")
	}
	if code := post("/api/resume"); code != http.StatusNoContent {
		t.Fatalf("resume: %d", code)
	}
	s.until(t, "the verdict", func() bool { return s.status(t).Audit.Audits[0].State == "decided" })

	if err := s.Process.Signal(syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	s.until(t, "paused by a signal", held("paused"))
	if err := syscall.Kill(s.auditor(t, 0), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	s.until(t, "a new auditor, paused", func() bool { st := s.status(t).Audit; return len(st.Audits) == 0 && st.Pace.Held == "paused" })
	if err := s.Process.Signal(syscall.SIGUSR2); err != nil {
		t.Fatal(err)
	}
	s.until(t, "resumed by a signal", held(""))
}

func TestRunAudits(t *testing.T) {
	t.Parallel()
	s := startSidecar(t, "")
	conn := s.connect(t)
	exec0(t, conn, "SELECT noisy(count(*), 0.5) FROM people /*dp_epsilon='0.2'*/") // leaks 2
	exec0(t, conn, "SET dp.epsilon = '3'")
	exec0(t, conn, "SELECT noisy(count(*), $1) FROM people WHERE id > 0", 2.0) // leaks 0.5
	exec0(t, conn, "RESET dp.epsilon")
	exec0(t, conn, "SELECT noisy(count(*), 4) FROM people WHERE id > 1")
	exec0(t, conn, "UPDATE other SET x = 1 /* no people */")
	exec0(t, conn, "SELECT 1 AS people")
	st := s.decided(t, 3)
	want := []struct {
		verdict, source string
		epsilon         float64
	}{{"violation", "comment", 0.2}, {"no_evidence", "setting", 3}, {"inconclusive", "", 0}}
	for i, w := range want {
		r := st.Audit.Audits[i].Report
		if r.Verdict != w.verdict || r.Claimed.Source != w.source || r.Claimed.Epsilon != w.epsilon {
			t.Errorf("audit %d (%s): %+v, want %+v", i, st.Audit.Audits[i].Summary, r, w)
		}
	}
	s.until(t, "statements that are not audited are counted", func() bool {
		skipped := s.status(t).Audit.Skipped
		return skipped["not_select"] > 0 && skipped["no_protected_table"] > 0
	})
	s.until(t, "the alert is in the log", func() bool { return strings.Contains(s.log.String(), `"privacy violation"`) })
	var metrics string // the auditor sends them right after its status
	for _, pattern := range []string{
		`dpwatch_statements_skipped_total\{reason="unprotected"\} [1-9]`,
		`dpwatch_verdicts_total\{verdict="violation"\} 1`, `dpwatch_alerts_sent_total\{receiver="log"\} 1`,
		`dpwatch_queries_skipped_total\{reason="not_select"\}`, "dpwatch_proxy_sessions 1", "dpwatch_auditor_up 1",
	} {
		s.until(t, "/metrics has "+pattern, func() bool {
			exec0(t, conn, "SELECT 1") // names no table: not sent to the auditor, once the relay has the names
			_, metrics = s.get(t, "/metrics")
			return regexp.MustCompile(pattern).MatchString(metrics)
		})
	}
	problems, err := promlint.New(strings.NewReader(metrics)).Lint()
	if err != nil {
		t.Errorf("metrics: %v", err)
	}
	for _, p := range problems {
		if strings.HasPrefix(p.Metric, "dpwatch_") {
			t.Errorf("metrics: %s: %s", p.Metric, p.Text)
		}
	}
}

// psql through the proxy prints the same as without it.
func TestRunPsql(t *testing.T) {
	t.Parallel()
	psql, err := exec.LookPath("psql")
	if err != nil {
		t.Skip("psql is not installed; the proxy's own tests use other clients")
	}
	s := startSidecar(t, "")
	script := file(t, "script.sql", `
\set ON_ERROR_STOP off
SELECT id, grp FROM people ORDER BY id LIMIT 3;
\d people
\copy (SELECT * FROM people WHERE id < 4 ORDER BY 1) TO STDOUT
CREATE TEMP TABLE t (a int, b text);
\copy t FROM STDIN
1	x
2	\N
\.
SELECT * FROM t ORDER BY a;
SELECT nonsense;
BEGIN; INSERT INTO other VALUES (7); SELECT 1/0; ROLLBACK;
SELECT count(*) FROM other;
SELECT 1 AS a; SELECT 2 AS b \; SELECT 3 AS c;
PREPARE p AS SELECT $1::int + 1; EXECUTE p(41);
DO $$ BEGIN RAISE NOTICE 'hello'; END $$;
LISTEN news; NOTIFY news, 'x';
\echo :SERVER_VERSION_NUM
SELECT 1 WHERE false \gset
SELECT $1::text AS bound \bind 'it''s' \g
`)
	output := func(dsn string) string {
		cmd := exec.Command(psql, "-X", "-f", script, dsn)
		cmd.Env = append(os.Environ(), "LC_ALL=C")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("psql: %v\n%s", err, out)
		}
		return regexp.MustCompile(`PID \d+`).ReplaceAllString(string(out), "PID n")
	}
	direct, through := output(s.direct), output(s.dsn())
	if direct != through {
		t.Errorf("psql differs\n--- direct\n%s\n--- through dpwatch\n%s", direct, through)
	}
	if !strings.Contains(through, "42") || !strings.Contains(through, "division by zero") {
		t.Errorf("the script did not run\n%s", through)
	}
}

// SIGTERM lets a running statement finish, refuses new clients, and ends the process.
func TestRunDrains(t *testing.T) {
	t.Parallel()
	s := startSidecar(t, "")
	conn := s.connect(t)
	watcher := pgtest.Connect(t, s.direct)
	exec0(t, watcher, "SELECT pg_advisory_lock(1)") // the statement waits for it
	answer := make(chan error, 1)
	go func() {
		var v string
		answer <- conn.QueryRow(context.Background(), "SELECT pg_advisory_lock_shared(1)::text || 'done'").Scan(&v)
	}()
	s.until(t, "the statement runs", func() bool {
		var n int
		if err := watcher.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'SELECT pg_advisory_lock_shared%'`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n == 1
	})
	if err := s.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	exec0(t, watcher, "SELECT pg_advisory_unlock(1)")
	if err := <-answer; err != nil {
		t.Errorf("the running statement: %v", err)
	}
	_ = conn.Close(context.Background())
	<-s.ended
	if code := s.ProcessState.ExitCode(); code != exitDone {
		t.Errorf("exit code %d after a drain, want 0\n%s", code, s.log.String())
	}
}

// A second signal does not wait for sessions, and no auditor is left running.
func TestRunSecondSignal(t *testing.T) {
	t.Parallel()
	s := startSidecar(t, "") // it drains for longer than the test waits
	auditor := s.auditor(t, 0)
	conn := s.connect(t)
	exec0(t, conn, "BEGIN")
	if err := s.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	s.until(t, "new clients are refused", func() bool {
		late, err := pgx.Connect(t.Context(), s.dsn())
		if err == nil {
			_ = late.Close(context.Background())
		}
		return err != nil
	})
	exec0(t, conn, "SELECT 1") // the session continues
	if code, body := s.get(t, "/readyz"); code != http.StatusServiceUnavailable || !strings.Contains(body, "shutting down") {
		t.Errorf("/readyz answers %d %q while sessions drain", code, body)
	}
	if err := s.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-s.ended
	if status, ok := s.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGTERM {
		t.Errorf("it ended by %v, want the second SIGTERM", s.ProcessState)
	}
	eventually.True(t, "the auditor is gone", func() bool { return syscall.Kill(auditor, 0) != nil })
}

// An unreachable shadow database stops audits, never traffic.
func TestRunWithoutShadow(t *testing.T) {
	t.Parallel()
	s := startSidecar(t, "BROKEN SHADOW")
	conn := s.connect(t)
	exec0(t, conn, "SELECT noisy(count(*), 0.5) FROM people /*dp_epsilon='0.2'*/")
	var st adminStatus
	s.until(t, "the audit waits", func() bool {
		st = s.status(t)
		return len(st.Audit.Audits) == 1 && st.Audit.Audits[0].State == "waiting" && st.Audit.Shadow != ""
	})
	exec0(t, conn, "SELECT 1")
	if code, _ := s.get(t, "/readyz"); code != http.StatusOK {
		t.Errorf("/readyz answers %d; it must not depend on the shadow database", code)
	}
	if trouble := st.Audit.Audits[0].Trouble; !strings.Contains(trouble, "127.0.0.1:1") {
		t.Errorf("the audit's trouble is %q; want the shadow database's address in it", trouble)
	}
}

// The engine is unreachable: clients get a proper error, and readiness reports it.
func TestRunWithoutEngine(t *testing.T) {
	t.Parallel()
	config := func(addr string) string {
		return file(t, "dpwatch.yaml", fmt.Sprintf(`
proxy: {listen: %s, upstream: 127.0.0.1:1}
admin: {listen: 127.0.0.1:0}
shadow: {dsn: "postgres://x@127.0.0.1:1/x"}
privacy: {protected: [public.people]}
`, addr))
	}
	s := &sidecar{}
	s.run(t, config("127.0.0.1:0"))
	_, err := pgx.Connect(t.Context(), "postgres://u@"+s.addr+"/x?sslmode=disable")
	if err == nil || !strings.Contains(err.Error(), "08001") {
		t.Errorf("connect: %v, want SQLSTATE 08001", err)
	}
	if code, body := s.get(t, "/readyz"); code != http.StatusServiceUnavailable || !strings.Contains(body, "route 127.0.0.1:0: the engine cannot be reached") {
		t.Errorf("/readyz answers %d %q", code, body)
	}
	s.until(t, "the log has the address and the cause", func() bool {
		log := s.log.String()
		return strings.Contains(log, `"upstream":"127.0.0.1:1"`) && strings.Contains(log, "connection refused")
	})
	// The address is in use now: a second process reports it and what to do.
	second := startProgram(t, "run", "--config", config(s.addr))
	<-second.ended
	if code := second.ProcessState.ExitCode(); code != exitFailure || !strings.Contains(second.log.String(), "choose another address") {
		t.Errorf("a second dpwatch: exit code %d\n%s", code, second.log.String())
	}
}

// Killing the auditor in the middle of traffic changes nothing for a client, and it is restarted.
func TestRunAuditorKilled(t *testing.T) {
	t.Parallel()
	_ = pgtest.Start(t)
	s := startSidecar(t, "")
	conn, pid := s.connect(t), 0
	for i := range 60 {
		var n int
		if err := conn.QueryRow(t.Context(), "SELECT count(*) + $1 FROM people", i).Scan(&n); err != nil || n != 50+i {
			t.Fatalf("statement %d: %d, %v", i, n, err)
		}
		if i%20 == 10 {
			pid = s.auditor(t, pid)
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		}
	}
	s.until(t, "an auditor that audits", func() bool {
		exec0(t, conn, "SELECT noisy(count(*), 0.5) FROM people /*dp_epsilon='0.2'*/")
		for _, a := range s.status(t).Audit.Audits {
			if a.Report.Verdict == "violation" {
				return true
			}
		}
		return false
	})
}
