package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/config"
	"github.com/dpwatch/dpwatch/internal/app/querypage"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
)

// TestMain is also the program itself, for tests that need it as a separate process and for its auditor.
func TestMain(m *testing.M) {
	if os.Getenv("DPWATCH_TEST_AS_PROGRAM") == "1" || len(os.Args) == 2 && slices.Contains([]string{"auditor", querypage.Command}, os.Args[1]) { // which does not have this variable
		plantPanic()
		main()
		return
	}
	state, err := os.MkdirTemp("", "dpwatch-state") // of all programs that the tests start
	if err != nil {
		panic(err)
	}
	_ = os.Setenv("XDG_STATE_HOME", state)
	_ = os.Setenv(config.TuningVariable, `{"retry_after": "200ms", "rescue_after": "15s"}`)
	pgtest.Main(m)
	_ = os.RemoveAll(state)
	_ = os.RemoveAll(gateway.directory) // "" does nothing
}

// program returns a command that runs the program with args.
func program(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	cmd.Env = append(os.Environ(), "DPWATCH_TEST_AS_PROGRAM=1")
	return cmd
}

// result is the outcome of one command.
type result struct {
	code           int
	stdout, stderr string
}

// call runs a command in this process.
func call(t *testing.T, stdin string, args ...string) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), args, environment{
		Getenv: os.Getenv, Stdin: strings.NewReader(stdin), Stdout: &stdout, Stderr: &stderr,
		Executable: func() (string, error) { return "/nonexistent/auditor", nil },
	})
	return result{code, stdout.String(), stderr.String()}
}

// want checks the exit code and that the output contains texts.
func (r result) want(t *testing.T, code int, texts ...string) {
	t.Helper()
	if r.code != code {
		t.Errorf("exit code %d, want %d", r.code, code)
	}
	for _, text := range texts {
		if !strings.Contains(r.stdout+r.stderr, text) {
			t.Errorf("nothing says %q", text)
		}
	}
	if t.Failed() {
		t.Logf("stdout:\n%s\nstderr:\n%s", r.stdout, r.stderr)
	}
}

// object decodes the standard output as one JSON object.
func (r result) object(t *testing.T) map[string]any {
	t.Helper()
	var v map[string]any
	d := json.NewDecoder(strings.NewReader(r.stdout))
	if err := d.Decode(&v); err != nil {
		t.Fatalf("not JSON: %v\n%s", err, r.stdout)
	}
	if _, err := d.Token(); err != io.EOF {
		t.Errorf("more than one JSON value\n%s", r.stdout)
	}
	return v
}

func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestUsage(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		args []string
		code int
		want string
	}{
		{"help", []string{}, exitDone, "Exit codes: 0 done"}, // nil would mean this process's own arguments
		{"unknown command", []string{"adit"}, exitFailure, `unknown command "adit" for dpwatch: did you mean dpwatch audit?`},
		{"unknown command, far from all", []string{"frobnicate"}, exitFailure, `unknown command "frobnicate" for dpwatch: commands are init, config, doctor, `},
		{"unknown command of a group", []string{"config", "chek"}, exitFailure, "did you mean dpwatch config check?"},
		{"the beginning of a command", []string{"neigh"}, exitFailure, "did you mean dpwatch neighbours?"},
		{"a group", []string{"config"}, exitDone, "dpwatch config [command]"},
		{"unknown flag", []string{"version", "--loud"}, exitFailure, "unknown flag: --loud: see dpwatch version --help"},
		{"mistyped flag", []string{"audit", "--max-trails", "5"}, exitFailure, "unknown flag: --max-trails: did you mean --max-trials?"},
		{"one hyphen", []string{"audit", "-dsn", "x"}, exitFailure, "unknown flag: -dsn: long flags take two hyphens, --dsn"},
		{"flag without its value", []string{"audit", "--epsilon"}, exitFailure, "--epsilon needs a value: a number, for example 0.5"},
		{"--version", []string{"--version"}, exitDone, "dpwatch "},
		{"version", []string{"version"}, exitDone, "dpwatch "},
		{"bad output format", []string{"version", "-o", "xml"}, exitFailure, "must be text or json"},
		{"config is required", []string{"run"}, exitFailure, `required flag(s) "config" not set`},
		{"missing file", []string{"run", "--config", "/nonexistent.yaml"}, exitFailure, "start from examples/dpwatch.yaml"},
		{"auditor by hand", []string{"auditor"}, exitFailure, "use dpwatch run"},
		{"analyze without input", []string{"analyze", "--epsilon", "1"}, exitFailure, "give --d0 FILE"},
		{"demo without PostgreSQL", []string{"demo", "--pg-bindir", "/nonexistent"}, exitFailure, "/nonexistent"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			call(t, "", tc.args...).want(t, tc.code, tc.want)
		})
	}
}

func TestConfigCheck(t *testing.T) {
	t.Parallel()
	good := file(t, "dpwatch.yaml", `
proxy: {listen: 127.0.0.1:0, upstream: 127.0.0.1:1}
shadow: {dsn: "postgres://u:hidden@127.0.0.1/x"}
privacy: {protected: [public.users]}
`)
	call(t, "", "config", "check", "--config", good).want(t, exitDone, "no faults")
	text, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	marked := file(t, "marked.yaml", "\ufeff"+strings.ReplaceAll(string(text), "\n", "\r\n"))
	call(t, "", "config", "check", "--config", marked).want(t, exitDone, "no faults")
	call(t, "", "config", "check", "--config", file(t, "wide.yaml", "\xff\xfep\x00")).want(t, exitFailure, "is UTF-16: save it as UTF-8")
	idle := file(t, "idle.yaml", string(text)+"neighbours: {copy_limit: 3GiB}\n")
	call(t, "", "config", "check", "--config", idle).want(t, exitDone, "warning", "neighbours.copy_limit", "neighbours.source is empty", "no faults")
	printed := call(t, "", "config", "print", "--config", good)
	printed.want(t, exitDone, "max_trials: 0")
	if strings.Contains(printed.stdout, "hidden") {
		t.Error("the password was printed")
	}
	bad := file(t, "bad.yaml", "proxy: {lisen: 1}\nadmin: {listen: 0.0.0.0:1}\n")
	call(t, "", "config", "check", "--config", bad).want(t, exitFailure,
		bad+`:1: proxy.lisen: unknown key: did you mean "listen"?`, bad+":2: admin.listen: other machines can reach 0.0.0.0:1")
}

func TestRewriteCommand(t *testing.T) {
	t.Parallel()
	const sql = "SELECT count(*) FROM users u /* who */ JOIN public.t USING (id);\n"
	call(t, sql, "rewrite", "--from", "public", "--to", "d1").want(t, exitDone, `"d1"`)
	js := call(t, sql, "rewrite", "--to", "d1", "-o", "json").object(t)
	if text, _ := js["sql"].(string); !strings.Contains(text, "/* who */") || strings.Contains(text, "public.t") {
		t.Errorf("sql = %q; want the comment kept and no table left in public", text)
	}
	call(t, "SELECT *\nFROM users, pg_sleep(3)", "rewrite", "--to", "d1").want(t, exitFailure, "refused", "FROM users, pg_sleep(3)\n              ^")
	refused := call(t, "DELETE FROM users", "rewrite", "--to", "d1", "-o", "json")
	refused.want(t, exitFailure)
	if r, _ := refused.object(t)["refused"].(map[string]any); r["reason"] != "not_select" {
		t.Errorf("refused = %v, want the reason not_select", r)
	}
	if assumed, _ := js["assumed"].([]any); len(assumed) == 0 {
		t.Errorf("assumed = %v; want what no catalog told", js["assumed"])
	}
	refused = call(t, "\n  SELECT NULL::users FROM users", "rewrite", "--to", "d1", "-o", "json")
	refused.want(t, exitFailure)
	if r, _ := refused.object(t)["refused"].(map[string]any); r["reason"] != "row_type" || r["offset"] != 16.0 {
		t.Errorf("refused = %v, want row_type at byte 16 of the input", r)
	}
	if copied := call(t, "COPY (SELECT * FROM users) TO STDOUT", "rewrite", "--to", "d1", "-o", "json").object(t); copied["sql"] != `SELECT * FROM "d1".users` {
		t.Errorf("sql = %q; want the query of COPY", copied["sql"])
	}
	call(t, "\ufeffSELECT count(*)\r\nFROM users;\r\n", "rewrite", "--to", "d1").want(t, exitDone, `"d1".users`)
	call(t, "SELECT my_noise(x) FROM users", "rewrite", "--to", "d1").want(t, exitFailure, "my_noise", "--safe-function")
	call(t, "SELECT my_noise(x) FROM users", "rewrite", "--to", "d1", "--safe-function", "my_noise").want(t, exitDone, "my_noise(x)")
	call(t, "SELECT my_noise(x, 'laplace') FROM users", "rewrite", "--to", "d1", "--safe-function", "my_noise").want(t, exitDone, "my_noise(x, 'laplace')")
	call(t, "SELECT my_noise(x, 'of users') FROM users", "rewrite", "--to", "d1", "--safe-function", "my_noise").want(t, exitFailure, "name_in_string")
	call(t, "SELECT n FROM top_users(5), users", "rewrite", "--to", "d1", "--safe-function", "*", "-o", "json").want(t, exitDone, "function top_users reads no protected table")
	call(t, "DECLARE c CURSOR FOR SELECT x FROM users", "rewrite", "--to", "d1").want(t, exitDone, `SELECT x FROM "d1".users`)
}
