package browsertest

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/internal/eventually"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
	"github.com/dpwatch/dpwatch/internal/program"
)

// directory is that of the program, and of the state of those that tests start.
var directory string

func TestMain(m *testing.M) {
	var err error
	if directory, err = os.MkdirTemp("", "dpwatch-browsertest"); err != nil {
		panic(err)
	}
	_ = os.Setenv("XDG_STATE_HOME", directory)
	pgtest.Main(m)
	_ = os.RemoveAll(directory)
}

// build builds dpwatch, with the flags of the Makefile: with others the SQL parser would be compiled again.
var build = sync.OnceValues(func() (string, error) {
	path := filepath.Join(directory, "dpwatch")
	cmd := exec.Command("go", "build", "-trimpath", "-tags", "netgo,osusergo", "-ldflags=-w", "-o", path, "./cmd/dpwatch")
	cmd.Dir = ".."
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return path, nil
})

// spawn starts dpwatch, which ends with the test.
func spawn(t *testing.T, args ...string) *program.Process {
	t.Helper()
	path, err := build()
	if err != nil {
		t.Fatal(err)
	}
	p, err := program.Spawn(path, args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	return p
}

// sidecar is dpwatch run in front of a database that is both engine and shadow: public.people is the data, d0 and d1
// are the copies.
type sidecar struct {
	*program.Process
	config        string // path
	direct        string // the DSN without the proxy
	token, viewer string // tokens of an auditor who is an operator, and of a viewer
}

const withLedger = true

// start starts a sidecar, with or without a ledger and with additional keys of the configuration.
func start(t *testing.T, ledger bool, extra string) *sidecar {
	t.Helper()
	s := &sidecar{direct: pgtest.Copies(t), token: rand.Text(), viewer: rand.Text()}
	pgtest.Exec(t, s.direct, "CREATE TABLE people AS SELECT * FROM d0.people")
	cfg, err := pgx.ParseConfig(s.direct)
	if err != nil {
		t.Fatal(err)
	}
	shadow, dsn, budgets := s.direct, "memory", "[]"
	if ledger {
		shadow, dsn, budgets = pgtest.ReplayRole(t, s.direct, "d0", "d1"), s.direct, "[{name: analysts, epsilon: 0.75}]"
	}
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	tokens := write("token", "auditor,operator ann "+s.token+"\nviewer "+s.viewer+"\n")
	s.config = write("dpwatch.yaml", fmt.Sprintf(`
proxy: {listen: 127.0.0.1:0, upstream: "%s:%d", drain_timeout: 1h}
admin: {listen: 127.0.0.1:0, token_file: %q}
shadow: {dsn: %q}
privacy: {protected: [public.people]}
claims: {safe_functions: [noisy], trust: [comment], settings: {epsilon: dp.epsilon, delta: dp.delta}}
audit: {measure_trials: 0, max_trials: 500, confidence: 0.999999, share: 1, watch_share: 0, sequences: false}
ledger: {dsn: %q}
budgets: %s
%s
`, cfg.Host, cfg.Port, tokens, shadow, dsn, budgets, extra))
	s.Process = spawn(t, "run", "--config", s.config)
	s.until(t, "dpwatch is up", func() bool {
		up, err := s.Up()
		if err != nil {
			t.Fatal(err)
		}
		return up
	})
	return s
}

// startPages starts a sidecar with a violation and an honest query, both decided, and returns the id of the first. The
// honest one is accused with a probability of at most 10^-6.
func startPages(t *testing.T, extra string) (s *sidecar, id string) {
	t.Helper()
	s = start(t, withLedger, extra)
	conn := pgtest.Connect(t, s.through())
	execute(t, conn, "/*dp_epsilon='0.5'*/ SELECT noisy(count(*), 0.2) FROM people WHERE id > $1", -1717171717)
	execute(t, conn, "/*dp_epsilon='0.5'*/ SELECT noisy(count(*), 4) FROM people")
	s.until(t, "two verdicts in the ledger", func() bool {
		body := s.get(t, "/api/status")
		var v struct {
			Audit struct{ Audits []struct{ ID, State string } }
		}
		if err := json.Unmarshal([]byte(body), &v); err != nil {
			t.Fatalf("%v\n%s", err, body)
		}
		all := v.Audit.Audits
		if len(all) != 2 || all[0].State != "decided" || all[1].State != "decided" {
			return false
		}
		id = all[0].ID
		return strings.Contains(body, `"unsaved_audits":0,"waiting":0,"lost":0`)
	})
	return s, id
}

// base returns the beginning of the addresses of the pages.
func (s *sidecar) base() string { return "http://" + s.Admin }

// through returns the connection string of the database through the proxy.
func (s *sidecar) through() string {
	return regexp.MustCompile(`@[^/]+/`).ReplaceAllString(s.direct, "@"+s.Listen+"/")
}

// until waits for a state while dpwatch runs.
func (s *sidecar) until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	eventually.True(t, what, func() bool {
		select {
		case <-s.Ended:
			t.Fatalf("dpwatch has ended before %s:\n%s", what, s.Log)
		default:
		}
		return ok()
	}, func() any { return s.Log.String() })
}

// get returns what the admin port answers to an auditor.
func (s *sidecar) get(t *testing.T, path string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.base()+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+s.token)
	r, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func execute(t *testing.T, conn *pgx.Conn, sql string, args ...any) {
	t.Helper()
	if _, err := conn.Exec(context.WithoutCancel(t.Context()), sql, args...); err != nil {
		t.Fatal(err)
	}
}
