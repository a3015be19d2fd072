package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/dpwatch/dpwatch/config"
	"github.com/dpwatch/dpwatch/internal/capture"
	"github.com/dpwatch/dpwatch/internal/clienttest"
	"github.com/dpwatch/dpwatch/internal/longtest"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
)

// clientPrograms are real clients: each program sends the statements that its client's users send, in which every DP
// statement has an epsilon of its own, and writes a line of JSON for each (statement, below).
var clientPrograms = []struct {
	name    string
	command func(t *testing.T) []string
}{
	{"dbt-postgres", pythonProgram("dbt_project.py")},
	{"pgjdbc", javaProgram},
	{"django", pythonProgram("django_client.py")},
	{"django-server-binding", pythonProgram("django_client.py", "server_side_binding")},
	{"sqlalchemy", pythonProgram("sqlalchemy_client.py")},
	{"sequelize", nodeProgram("sequelize_client.js")},
	{"node-postgres", nodeProgram("pg_client.js")},
	{"psycopg", pythonProgram("psycopg_client.py")},
	{"asyncpg", pythonProgram("asyncpg_client.py")},
	{"tokio-postgres", func(t *testing.T) []string { return []string{filepath.Join(clienttest.Rust(t), "claims")} }},
}

// statement is one DP statement, as its client sent it or as the ledger has it.
type statement struct {
	Epsilon float64  `json:"epsilon"`
	Source  string   `json:"source"` // of the claim
	Params  []string `json:"params"` // bound ones, as text
	Times   int64    `json:"times"`
}

func (s statement) String() string {
	return fmt.Sprintf("epsilon %v from %s, parameters %q, %d times", s.Epsilon, s.Source, s.Params, s.Times)
}

func clientFile(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("testdata", "clients", name))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func pythonProgram(name string, args ...string) func(*testing.T) []string {
	return func(t *testing.T) []string {
		return append([]string{clienttest.Python(t), clientFile(t, name)}, args...)
	}
}

func nodeProgram(name string) func(*testing.T) []string {
	return func(t *testing.T) []string {
		return []string{"env", "NODE_PATH=" + clienttest.Node(t), "node", "--no-deprecation", clientFile(t, name)}
	}
}

func javaProgram(t *testing.T) []string {
	return []string{"java", "-Xshare:auto", "-XX:TieredStopAtLevel=1", "-cp", clienttest.Java(t), clientFile(t, "Jdbc.java")}
}

// TestClientsRecorded: whatever real clients of five languages send, the ledger has every DP statement with its claim and
// parameters, as often as it was run, and nothing else, and no session is in doubt.
func TestClientsRecorded(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	s := startClientSidecar(t)
	sent := make([][]statement, len(clientPrograms))
	t.Run("run", func(t *testing.T) {
		for i, c := range clientPrograms {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				sent[i] = s.runClient(t, c.name, i+1, c.command(t))
			})
		}
	})
	s.settle(t)
	for i, c := range clientPrograms {
		if sent[i] == nil { // skipped
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(lines(sent[i]), lines(s.recorded(t, c.name, i+1))); diff != "" {
				t.Errorf("sent and recorded statements differ (-sent +recorded):\n%s", diff)
			}
		})
	}
	for reason, n := range s.metrics(t, "dpwatch_queries_skipped_total") {
		// Clients send other statements than DP queries. While definitions are read again, all are looked at: those with
		// which pools reset sessions (pg_advisory_unlock_all) have side effects.
		if n > 0 && !slices.Contains([]string{"not_select", "no_protected_table", "side_effects", "system_catalog_only", "unclaimed_read", "unprotected"}, reason) {
			t.Errorf("%v statements are skipped as %s", n, reason)
		}
	}
	for _, name := range []string{"dpwatch_uncaptured_sessions_total", "dpwatch_capture_dropped_total", "dpwatch_statements_set_aside_total", "dpwatch_statements_lost_total"} {
		for label, n := range s.metrics(t, name) {
			if n != 0 {
				t.Errorf("%s of %q is %v", name, label, n)
			}
		}
	}
	if t.Failed() {
		t.Logf("log of dpwatch:\n%s", s.log.String())
	}
}

// startClientSidecar starts a dpwatch whose audits are so short that it mainly records.
func startClientSidecar(t *testing.T) *sidecar {
	t.Helper()
	s := &sidecar{direct: copies(t), environ: []string{config.TuningVariable + `={"capture_rate": 100000, "max_per_shape": 10000, "batch_trials": 1}`}}
	pgtest.Exec(t, s.direct, `
		CREATE TABLE people AS SELECT * FROM d0.people;
		CREATE TYPE mood AS ENUM ('sad', 'happy');
		CREATE FUNCTION dp_count(n bigint, epsilon float8) RETURNS float8 LANGUAGE sql VOLATILE
			AS 'SELECT n + ln((1 - random()) / (1 - random())) / epsilon';
		CREATE VIEW counted AS SELECT dp_count(count(*), 0.5) FROM people;
		CREATE FUNCTION headcount() RETURNS float8 LANGUAGE sql AS 'SELECT dp_count(count(*), 0.5) FROM public.people';
		CREATE TABLE notes (x text); CREATE TABLE answers (id int, v float8 DEFAULT headcount())`)
	s.replay = replayRole(t, s.direct, "d0", "d1")
	cfg, err := pgx.ParseConfig(s.direct)
	if err != nil {
		t.Fatal(err)
	}
	s.run(t, file(t, "dpwatch.yaml", fmt.Sprintf(`
proxy: {listen: 127.0.0.1:0, upstream: "%s:%d", drain_timeout: 1h}
admin: {listen: 127.0.0.1:0}
shadow: {dsn: %q}
privacy: {protected: [public.people], catalog: %q, unclaimed_reads: {policy: count}}
claims: {functions: [{name: dp_count, epsilon: 2}], safe_functions: [noisy], trust: [comment, setting], settings: {epsilon: dp.epsilon, delta: dp.delta}}
audit: {sequences: false, max_audits: 10000, memory: 2GiB, max_trials: 2, share: 1, watch_share: 0}
ledger: {dsn: %q}
`, cfg.Host, cfg.Port, s.replay, s.direct, s.direct)))
	s.until(t, "the ledger", func() bool { return strings.Contains(s.log.String(), "audits restored from the ledger") })
	return s
}

// runClient runs a program whose epsilons are between number and number + 1, and returns what it says that it sent.
func (s *sidecar) runClient(t *testing.T, name string, number int, command []string) []statement {
	t.Helper()
	cfg, err := pgx.ParseConfig(s.direct)
	if err != nil {
		t.Fatal(err)
	}
	host, port, err := net.SplitHostPort(s.addr)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8", "PYTHONDONTWRITEBYTECODE=1", "PGHOST="+host, "PGPORT="+port, "PGUSER="+cfg.User, "PGPASSWORD="+cfg.Password,
		"PGDATABASE="+cfg.Database, "PGSSLMODE=disable", "PGAPPNAME="+name, "DP_BASE="+strconv.Itoa(number))
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s\n%s", err, stdout.String(), stderr.String())
	}
	sent := []statement{}
	for line := range strings.Lines(stdout.String()) {
		var st statement
		if err := json.Unmarshal([]byte(line), &st); err != nil || st.Times == 0 {
			t.Fatalf("the program wrote %q, %v", line, err)
		}
		sent = append(sent, st)
	}
	if len(sent) < 6 {
		t.Errorf("the client did next to nothing: %v", sent)
	}
	return sent
}

// lastEpsilon is the claim of the statement with which settle knows that it has waited for all earlier ones.
const lastEpsilon = 1000

// settle waits until the ledger has everything that clients have sent.
func (s *sidecar) settle(t *testing.T) {
	t.Helper()
	s.until(t, "all sessions have ended", func() bool { return s.metrics(t, "dpwatch_proxy_sessions")[""] == 0 })
	// What they sent is captured before what a later session sends.
	last := s.connect(t)
	exec0(t, last, fmt.Sprintf("SET application_name = 'last'; SELECT dp_count(count(*), %d) FROM people", lastEpsilon))
	ledger := pgtest.Connect(t, s.direct)
	count := func(query string, args ...any) (n int) {
		if err := ledger.QueryRow(t.Context(), query, args...).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	s.until(t, "the last statement is in the ledger", func() bool {
		return count("SELECT count(*) FROM dpwatch_ledger.queries WHERE epsilon = $1", lastEpsilon) == 1
	})
	sum := func(name string) (n float64) {
		for _, v := range s.metrics(t, name) {
			n += v
		}
		return n
	}
	s.until(t, "all that was captured is recognized", func() bool {
		captured := sum("dpwatch_statements_tracked_total") - sum("dpwatch_capture_dropped_total")
		return sum("dpwatch_queries_captured_total") == captured && sum("dpwatch_dp_statements_total")+sum("dpwatch_queries_skipped_total") == captured
	})
	s.until(t, "all is written", func() bool {
		_, body := s.get(t, "/api/status")
		return strings.Contains(body, `"unsaved_audits":0,"waiting":0,"lost":0`)
	})
	s.until(t, "every statement is in the ledger, which has it after the first turn of its audit", func() bool {
		return count("SELECT count(*) FROM dpwatch_ledger.queries WHERE statement IS NULL") == 0
	})
}

// metrics returns the values of a metric by the value of its last label, "" without labels.
func (s *sidecar) metrics(t *testing.T, name string) map[string]float64 {
	t.Helper()
	_, body := s.get(t, "/metrics")
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, m := range families[name].GetMetric() {
		label := ""
		for _, l := range m.GetLabel() {
			label = l.GetValue()
		}
		values[label] += m.GetCounter().GetValue() + m.GetGauge().GetValue()
	}
	return values
}

// recorded returns what the ledger has of a client: by its name, or by its epsilons.
func (s *sidecar) recorded(t *testing.T, name string, number int) []statement {
	t.Helper()
	direct := pgtest.Connect(t, s.direct)
	rows, err := pgtest.Connect(t, s.direct).Query(t.Context(), `
		SELECT application, epsilon, claim_source, statement, u.executions FROM dpwatch_ledger.queries q JOIN dpwatch_ledger.query_users u ON u.query = q.id
		WHERE application = $1 OR epsilon >= $2 AND epsilon < $2 + 1`, name, float64(number))
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var all []statement
	for rows.Next() {
		var application string
		var epsilon *float64
		var st statement
		var text []byte
		if err := rows.Scan(&application, &epsilon, &st.Source, &text, &st.Times); err != nil {
			t.Fatal(err)
		}
		q, err := capture.DecodeBinary(text)
		if err != nil {
			t.Fatal(err)
		}
		if epsilon != nil {
			st.Epsilon = *epsilon
		}
		if application != name || q.ApplicationName != name {
			t.Errorf("the application of %s is %q, in the statement %q", q.SQL, application, q.ApplicationName)
		}
		for i, p := range q.Params {
			if p.OID == 0 && p.Format == pgtype.BinaryFormatCode { // the server infers the type
				d, err := direct.Prepare(t.Context(), "", q.SQL)
				if err != nil {
					t.Fatalf("%s: %v", q.SQL, err)
				}
				p.OID = d.ParamOIDs[i]
			}
			st.Params = append(st.Params, paramText(t, p))
		}
		all = append(all, st)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// paramText returns a bound parameter as text, whatever its format.
func paramText(t *testing.T, p capture.Param) string {
	t.Helper()
	if p.Null {
		return "NULL"
	}
	if p.Format == pgtype.TextFormatCode {
		return string(p.Value)
	}
	m := pgtype.NewMap()
	typ, ok := m.TypeForOID(p.OID)
	if !ok {
		return fmt.Sprintf("\\x%x", p.Value)
	}
	v, err := typ.Codec.DecodeValue(m, p.OID, p.Format, p.Value)
	if err != nil {
		t.Errorf("a parameter of type %d: %v", p.OID, err)
		return ""
	}
	text, err := m.Encode(p.OID, pgtype.TextFormatCode, v, nil)
	if err != nil {
		t.Errorf("a parameter of type %d: %v", p.OID, err)
	}
	return string(text)
}

// lines returns statements in the order of their texts.
func lines(all []statement) (out []string) {
	for _, s := range all {
		out = append(out, s.String())
	}
	slices.Sort(out)
	return out
}
