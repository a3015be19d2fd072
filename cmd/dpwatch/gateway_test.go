package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/dpwatch/dpwatch/internal/longtest"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
)

// gateway is the example engine and its gateway, built once in a directory that TestMain removes.
var gateway struct {
	once      sync.Once
	directory string
	err       error
}

func buildGateway() {
	if gateway.directory, gateway.err = os.MkdirTemp("", "dpwatch-gateway-"); gateway.err != nil {
		return
	}
	out, err := exec.Command("go", "build", "-tags", "netgo,osusergo", "-o", gateway.directory, "../../examples/gateway/...").CombinedOutput()
	if err != nil {
		gateway.err = fmt.Errorf("%w\n%s", err, out)
	}
}

// gateways builds the example engine and returns a function that starts it on a source, with a planted bug, and returns
// its connection string.
func gateways(t *testing.T) func(t *testing.T, source, broken string) string {
	t.Helper()
	if gateway.once.Do(buildGateway); gateway.err != nil {
		t.Fatalf("build the example engine: %v", gateway.err)
	}
	binary := filepath.Join(gateway.directory, "gateway")
	return func(t *testing.T, source, broken string) string {
		t.Helper()
		ctx, stop := context.WithCancel(context.Background())
		cmd := exec.CommandContext(ctx, binary, "-listen", "127.0.0.1:0", "-source", source,
			"-engine", filepath.Join(gateway.directory, "noisy")+" -epsilon 1 -broken "+broken)
		stdout, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { stop(); _ = cmd.Wait() })
		address, err := bufio.NewReader(stdout).ReadString('\n')
		if err != nil {
			t.Fatalf("the example engine does not listen: %v", err)
		}
		return "postgres://dpwatch@" + strings.TrimSpace(address) + "/shadow?sslmode=disable"
	}
}

// visits returns a database in which user 50 has 40 rows in d0.visits and none in d1.visits.
func visits(t *testing.T) string {
	t.Helper()
	dsn := pgtest.Database(t)
	pgtest.Exec(t, dsn, `
		CREATE SCHEMA d0; CREATE TABLE d0.visits AS SELECT g AS id, 1 AS day, 10.0 AS cost FROM generate_series(1, 49) g
			UNION ALL SELECT 50, g, 10 FROM generate_series(1, 40) g;
		CREATE SCHEMA d1; CREATE TABLE d1.visits AS SELECT * FROM d0.visits WHERE id <> 50`)
	return dsn
}

// The example engine is audited through its own port. Audits of the honest engine run at confidence 0.999999, so that
// each fails this test at most once in a million runs.
func TestAuditGateway(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	start := gateways(t)
	sql := "SELECT dp_count(*) FROM visits"
	for i, tc := range []struct {
		name, broken, sql, protocol, verdict string
		code                                 int
		worlds                               bool // one engine for each copy
	}{
		{"honest, simple queries", "none", "SELECT dp_count(*), dp_sum(cost) FROM visits WHERE day < 30", "simple", "no_evidence", exitDone, false},
		{"honest, an engine for each world", "none", sql, "extended", "no_evidence", exitDone, true},
		{"no clipping, an engine for each world", "no-clip", sql, "extended", "violation", exitViolation, true},
		{"the same noise always", "seeded", sql, "extended", "violation", exitViolation, false},
		{"half the noise", "half-noise", sql, "extended", "violation", exitViolation, false},
		{"honest", "none", sql, "extended", "no_evidence", exitDone, false},
		{"no clipping", "no-clip", sql, "simple", "violation", exitViolation, false},
	} {
		if i > 3 && !longtest.Enabled() { // the others differ from these in one column
			break
		}
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			dsn := visits(t) // of its own: what is read is counted for a whole database
			args := []string{
				"audit", "--dsn", dsn, "--d0", "d0", "--d1", "d1", "--epsilon", "1", "--sql", tc.sql, "--protocol", tc.protocol,
				"-o", "json",
			}
			if tc.worlds {
				for _, schema := range []string{"d0", "d1"} {
					args = append(args, "--engine", start(t, dsn+"&search_path="+schema, tc.broken))
				}
			} else {
				args = append(args, "--engine", start(t, dsn, tc.broken))
			}
			if tc.code == exitDone {
				args = append(args, "--max-trials", "600", "--confidence", "0.999999")
			}
			r := call(t, "", args...)
			r.want(t, tc.code, "refuses the settings default_transaction_read_only")
			report := r.object(t)
			checkContract(t, report)
			if report["verdict"] != tc.verdict {
				t.Errorf("verdict %v, want %s", report["verdict"], tc.verdict)
			}
			if texts, _ := report["sql"].(map[string]any); tc.worlds != (texts["d0"] == tc.sql) {
				t.Errorf("sql.d0 is %q", texts["d0"])
			}
			t.Logf("trials %v, epsilon of %v at least", report["trials"], report["epsilon_lower"])
		})
	}
}

func TestAuditGatewayFaults(t *testing.T) {
	t.Parallel()
	dsn := visits(t)
	common := []string{"audit", "--dsn", dsn, "--d0", "d0", "--d1", "d1", "--epsilon", "1", "--sql", "SELECT dp_count(*) FROM visits"}
	nobody := "postgres://u@127.0.0.1:1/x"
	for _, tc := range []struct {
		name string
		args []string
		want string
	}{
		{"not a connection string", []string{"--engine", "::"}, "engine 0: not a connection string"},
		{"nobody listens", []string{"--engine", nobody}, "engine x at 127.0.0.1:1"},
		{"too many", []string{"--engine", nobody, "--engine", nobody, "--engine", nobody}, "give one for all copies, or one for D0, one for each --d1 and one for --twin"},
		{"protocol", []string{"--engine", nobody, "--protocol", "smoke"}, "must be extended or simple"},
		{"parameters in simple queries", []string{"--engine", dsn, "--protocol", "simple", "--param", "1"}, "parameters"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			call(t, "", append(common, tc.args...)...).want(t, exitFailure, tc.want)
		})
	}
}
