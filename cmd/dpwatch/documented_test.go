package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dpwatch/dpwatch/internal/longtest"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
)

// documented is a command in README or docs.
type documented struct{ where, text string }

// commandLine is a command in a block of a page: indented by four spaces, outside of lists and fences. The comment is
// not part of it.
var commandLine = regexp.MustCompile(`^    ((?:dpwatch|make|go|curl|sh|kill|systemctl|kubectl|helm|docker|apt|apt-get|install|goreleaser|openssl|psql) .*?)(?: +# .*)?$`)

// inlineCommand is a command in a sentence. Those of dpwatch are only named there: TestNamedCommands.
var inlineCommand = regexp.MustCompile("`(curl [^`]+)`")

// documentedCommands returns the commands of README and docs, but those of docs/start.md, which is run as it is.
func documentedCommands(t *testing.T) (all []documented) {
	t.Helper()
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(pages) < 20 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	for _, page := range append(pages, "../../README.md", "../../CONTRIBUTING.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(string(text), "\n") {
			m := commandLine.FindStringSubmatch(line)
			if m == nil {
				m = inlineCommand.FindStringSubmatch(line)
			}
			if m != nil && filepath.Base(page) != "start.md" {
				all = append(all, documented{fmt.Sprintf("%s:%d", filepath.Base(page), i+1), m[1]})
			}
		}
	}
	return all
}

// elsewhere are the commands, by their beginnings, that another test runs, or that need what a test does not have; each
// with the file that runs what can be run of them.
var elsewhere = map[string]string{
	"make demo": ".ci/run", "make test": ".ci/run", "make lint": ".ci/run", "make build": "Makefile",
	"kill -HUP ":                         "cmd/dpwatch/reload_test.go",     // SIGHUP
	"systemctl ":                         "deploy/test/systemd_test.go",    // the units
	"install ":                           "deploy/test/systemd_test.go",    // into the places of the units
	"apt install ./dpwatch":              "deploy/package/package_test.go", // the package
	"goreleaser ":                        "deploy/test/release_test.go",
	"apt-get install gcc":                "deploy/package/package_test.go",
	"sh deploy/compose/start.sh":         "deploy/compose/compose_test.go", // the same services as processes
	"docker compose ":                    "deploy/compose/compose_test.go",
	"sh deploy/image/build.sh":           "deploy/image/image_test.go", // the same root file system
	"kubectl apply -k deploy/kustomize/": "deploy/test/manifests_test.go",
	"helm install audit deploy/helm/":    "deploy/test/manifests_test.go",
}

// stage says how commands with a beginning are run, in the order of the list. The first that matches counts.
type stage struct {
	begins string
	until  string // a text of the output after which it is ended; "" = it ends by itself
	codes  string // exit codes; "" = 0
}

// documentedStages run against the dpwatch of docs/start.md, which has found a violation; other.yaml is a configuration
// with other ports and copies.
var documentedStages = []stage{
	{begins: "dpwatch init "},
	{begins: "dpwatch generate "},
	{begins: "dpwatch calibrate ", codes: "0 2"}, // the stand-in of the engine is not right
	{begins: "dpwatch rewrite "},
	{begins: "dpwatch analyze "},
	{begins: "dpwatch audit "},
	{begins: "dpwatch neighbours create --config other.yaml --plan"},
	{begins: "dpwatch neighbours create --config"},
	{begins: "dpwatch neighbours verify "},
	{begins: "dpwatch neighbours list "},
	{begins: "dpwatch neighbours create --replace "},
	{begins: "dpwatch config "},
	{begins: "dpwatch doctor "},
	{begins: "dpwatch migrate "},
	{begins: "dpwatch run ", until: `"dpwatch is up"`},
	{begins: "dpwatch worker ", until: `"dpwatch worker is up"`},
	{begins: "dpwatch neighbours drop "},
	{begins: "dpwatch status "},
	{begins: "dpwatch coverage "},
	{begins: "dpwatch budgets "},
	{begins: "dpwatch audits list "},
	{begins: "dpwatch alerts "},
	{begins: "dpwatch report --new-key "},
	{begins: "dpwatch report $AUDIT "},
	{begins: "dpwatch report --all "},
	{begins: "dpwatch report --period "},
	{begins: "dpwatch report --since "},
	{begins: "dpwatch report --verify "},
	{begins: "dpwatch explain "},
	{begins: "dpwatch audits reproduce ", codes: "2"},
	{begins: "dpwatch audits accept "},
	{begins: "curl "},
}

// adapted returns a command with the objects of the test in the place of those of the pages.
func adapted(command string) string {
	command = strings.NewReplacer(
		"init --dsn postgres://postgres@127.0.0.1:5432/shop", `init --dsn "$DATABASE"`, "-o dpwatch.yaml --sql roles.sql", `-o "$EMPTY/dpwatch.yaml" --sql "$EMPTY/roles.sql"`,
		"postgres://replay@localhost/shadow --d0 d0 --d1 d1", `"host=$HOST port=$PORT dbname=shop_shadow user=dpwatch_replay password=$(cat passwords/replay)" --d0 d0 --d1 d1_1`,
		"calibrate --runs 10", `calibrate --runs 1 --max-trials 200 --dsn "$DATABASE"`,
		"--engine postgres://dba@localhost/test", `--rows 5 --max-trials 200 --fit-trials 50 --engine "$DATABASE"`,
		"curl ", "curl -fsS ", ":9188/", ":$ADMIN_PORT/", "/run/dpwatch/admin.sock", "$PWD/admin.sock",
		"--sql A --sql B", `--sql "SELECT anon_count(id, 0.5) FROM users" --sql "SELECT anon_count(id, 0.25) FROM users"`,
		"2027-01-31", time.Now().AddDate(0, 1, 0).Format(time.DateOnly),
	).Replace(command)
	id := "$AUDIT"
	if strings.HasPrefix(command, "dpwatch alerts ") {
		id = "$ALERT"
	}
	command = strings.ReplaceAll(command, "3f9c", id)
	if strings.HasPrefix(command, "dpwatch audit ") && !strings.Contains(command, "--max-trials") {
		command += " --max-trials 200"
	}
	for _, begins := range []string{"dpwatch neighbours ", "dpwatch run ", "dpwatch worker ", "dpwatch migrate ", "dpwatch config ", "dpwatch doctor "} {
		if strings.HasPrefix(command, begins) {
			command = strings.ReplaceAll(command, "dpwatch.yaml", "other.yaml")
		}
	}
	return command
}

// stagesOf returns the script that runs the documented commands, stage by stage.
func stagesOf(t *testing.T) string {
	t.Helper()
	used := map[string]bool{}
	scripts := make([]string, len(documentedStages))
	for _, d := range documentedCommands(t) {
		command := adapted(d.text)
		if i := slices.IndexFunc(documentedStages, func(s stage) bool { return strings.HasPrefix(command, s.begins) }); i >= 0 {
			used[documentedStages[i].begins] = true
			codes := documentedStages[i].codes
			if codes == "" {
				codes = "0"
			}
			scripts[i] += fmt.Sprintf("try %q %q %q <<'END_OF_COMMAND'\n%s\nEND_OF_COMMAND\n", d.where, codes, documentedStages[i].until, command)
			continue
		}
		known := false
		for begins, file := range elsewhere {
			if strings.HasPrefix(d.text, begins) {
				known, used[begins] = true, true
				if _, err := os.Stat("../../" + file); err != nil {
					t.Errorf("%s: %s: %v", d.where, begins, err)
				}
			}
		}
		if !known {
			t.Errorf("%s: no test runs %s: add it to documentedStages or elsewhere", d.where, d.text)
		}
	}
	for _, s := range documentedStages {
		if !used[s.begins] {
			t.Errorf("no page has a command of the stage %q", s.begins)
		}
	}
	for begins := range elsewhere {
		if !used[begins] {
			t.Errorf("no page has a command %q", begins)
		}
	}
	return strings.Join(scripts, "")
}

// trying defines try PAGE CODES TEXT, which runs the command of its standard input: to its end, or until the text is in
// its output.
const trying = `
failed=no
try() {
	command=$(cat); export EMPTY=$(mktemp -d "$PWD/empty.XXXX"); code=0; : >out
	if [ -z "$3" ]; then
		bash -c "$command" >out 2>&1 </dev/null || code=$?
	else
		bash -c "exec $command" >out 2>&1 </dev/null & tried=$!
		until grep -q -- "$3" out; do kill -0 $tried || break; sleep 0.1; done
		kill $tried || true; wait $tried || code=$?
	fi
	case " $2 " in *" $code "*) echo "$1: $command: $code" ;; *) echo "$1: $command: exit code $code, want $2"; cat out; failed=yes ;; esac
}
`

// prepared finds a violation, as the stand-in of the engine returns NULL for the empty set, without noise; and makes
// the files that the commands name.
const prepared = `
psql -qX "$PROXY" -c "SELECT anon_count(id, 0.5) FROM users WHERE id = 1" >out
until dpwatch audits list --config dpwatch.yaml --verdict violation >out && grep -q violation out && dpwatch alerts list --config dpwatch.yaml >alerts && grep -q epsilon alerts; do sleep 0.5; done
export AUDIT=$(awk '$2 == "violation" || $3 == "violation" { print $1; exit }' out) ALERT=$(awk '/epsilon/ { print $1; exit }' alerts)
echo "audit $AUDIT, alert $ALERT"
sed -e "s/$PROXY_PORT/$OTHER_PORT/; s/$ADMIN_PORT/0/; s/admin.sock/other.sock/; s/^shadow:/shadow:\n  d0: e0\n  d1: [e1]/; s/^neighbours:/neighbours:\n  choose: [{rule: most_rows}]/; s/^ledger: {/ledger: {schema: other_ledger, /" dpwatch.yaml >other.yaml
echo "SELECT anon_count(id, 0.5) FROM users" >query.sql
`

// TestDocumented runs the commands of docs/start.md on a database with a stand-in of an engine, and then every command
// of README and docs. That the honest query of the pages is called a violation has a probability of at most 1e-6, with
// audit.confidence; the broken one is found in a few pairs of trials.
func TestDocumented(t *testing.T) {
	script := stagesOf(t)
	longtest.Skip(t)
	t.Parallel()
	psql, err := exec.LookPath("psql")
	if _, without := exec.LookPath("curl"); err != nil || without != nil {
		t.Skip("psql or curl is not installed; the pages use both")
	}
	server := pgtest.Connect(t, pgtest.Database(t)).Config()
	pgtest.Exec(t, server.ConnString(), "CREATE DATABASE shop")
	t.Cleanup(func() { pgtest.Exec(t, server.ConnString(), "DROP DATABASE shop WITH (FORCE)") })
	address := func(database string, port int) string {
		return fmt.Sprintf("postgres://%s:%s@%s:%d/%s?sslmode=disable", server.User, server.Password, server.Host, port, database)
	}
	database := address("shop", int(server.Port))
	engine, err := os.ReadFile("../../examples/anon_functions/engine.sql")
	if err != nil {
		t.Fatal(err)
	}
	pgtest.Exec(t, database, string(engine), `CREATE TABLE users (id int PRIMARY KEY, age int); INSERT INTO users SELECT g, 20 + g % 60 FROM generate_series(1, 40) g;
		CREATE TABLE orders (id serial PRIMARY KEY, user_id int REFERENCES users, total float8); INSERT INTO orders (user_id, total) SELECT CASE WHEN g < 60 THEN 1 ELSE g % 40 + 1 END, g FROM generate_series(1, 100) g;
		CREATE MATERIALIZED VIEW synopsis AS SELECT anon_count(id, 0.5) AS n FROM users;
		CREATE TABLE devices (id int PRIMARY KEY)`)
	dir := t.TempDir()
	results(t, dir)
	ports := freePorts(t, 3)
	page := readmeScript(t, "../../docs/start.md")
	first, removal, ok := strings.Cut(page, "kill %1")
	initialized := "--passwords passwords\n"
	if !ok || !strings.Contains(first, initialized) {
		t.Fatalf("docs/start.md has changed:\n%s", page)
	}
	// What a user may change when reviewing the file: the ports, and more. Short audits, whose violations no control on a
	// twin blocks, which it does with a probability of up to 1/20.
	review := `sed -i -e "s/^shadow:/shadow:\n  twin: none/; s/6432/$PROXY_PORT/; s|^  listen: .127.0.0.1:9188.*|  - {listen: 127.0.0.1:$ADMIN_PORT, token_file: $PWD/admin.token}\n  - {listen: \"unix:$PWD/admin.sock\"}|" dpwatch.yaml
echo token-of-the-documented-commands >admin.token
cat >>dpwatch.yaml <<END
audit: {max_trials: 300, measure_trials: 0, confidence: 0.999999, share: 1}
budgets: [{name: analysts, epsilon: 100}]
alerts: {receivers: [{name: oncall, type: exec, command: [/bin/cat]}]}
ledger: {migrate: true}
END
`
	first = strings.Replace(first, initialized, initialized+review, 1)
	shell(t, dir, psql, first+prepared+trying+script+"[ $failed = no ]\nkill %1"+removal, "DATABASE="+database, "SHADOW="+address("shop_shadow", int(server.Port)),
		"PROXY="+address("shop", ports[0]), "HOST="+server.Host, "PORT="+itoa(int(server.Port)), "PROXY_PORT="+itoa(ports[0]), "ADMIN_PORT="+itoa(ports[1]), "OTHER_PORT="+itoa(ports[2]))
}

// results writes the results that analyze reads: Laplace noise of scale 2 on D0 and D1 alike, from a fixed seed; and
// answers of randomised response.
func results(t *testing.T, dir string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "answers.txt"), []byte(strings.Repeat("yes\nno\nno\n", 50)), 0o600); err != nil {
		t.Fatal(err)
	}
	source := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // not a secret
	for d := range 2 {
		lines, stores := "", "run,store_id,n\n"
		for run := range 100 {
			for store := range 2 {
				noise := 2 * source.ExpFloat64() * float64(1-2*source.IntN(2))
				stores += fmt.Sprintf("%d,%d,%.9f\n", run, store, 50+noise)
				if store == 0 {
					lines += fmt.Sprintf("%.9f\n", 50+noise)
				}
			}
		}
		var packed bytes.Buffer
		w := gzip.NewWriter(&packed)
		_, _ = w.Write([]byte("n\n" + lines))
		_ = w.Close()
		for name, text := range map[string]string{"d%d.txt": lines, "d%d.csv": "n\n" + lines, "stores%d.csv": stores, "d%d.csv.gz": packed.String()} {
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf(name, d)), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// freePorts returns ports of 127.0.0.1 that nothing listens on.
func freePorts(t *testing.T, n int) (ports []int) {
	t.Helper()
	for range n {
		l, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports
}

// TestNamedCommands: the commands and flags that sentences of README, docs and deploy name exist.
func TestNamedCommands(t *testing.T) {
	t.Parallel()
	var pages []string
	for _, pattern := range []string{"../../*.md", "../../docs/*.md", "../../deploy/*/*.md", "../../examples/*/*.md", "../../examples/*.yaml"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, found...)
	}
	named, commands := regexp.MustCompile("`dpwatch ([a-z][^`\n]*)`"), 0
	root := rootCommand(environment{})
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range named.FindAllStringSubmatch(string(text), -1) {
			commands++
			words := strings.Fields(m[1])
			cmd, rest, err := root.Find(words)
			if err != nil || cmd == root {
				t.Errorf("%s: `dpwatch %s`: no such command: %v", filepath.Base(page), m[1], err)
				continue
			}
			if cmd.HasSubCommands() && len(rest) > 0 && !strings.HasPrefix(rest[0], "-") && rest[0] == strings.ToLower(rest[0]) {
				t.Errorf("%s: `dpwatch %s`: %s has no command %s", filepath.Base(page), m[1], cmd.Name(), rest[0])
			}
			for _, word := range rest {
				name, _, _ := strings.Cut(strings.TrimPrefix(word, "--"), "=")
				if strings.HasPrefix(word, "--") && name != "" && cmd.Flags().Lookup(name) == nil && cmd.InheritedFlags().Lookup(name) == nil && name != "help" {
					t.Errorf("%s: `dpwatch %s`: no flag %s", filepath.Base(page), m[1], word)
				}
			}
		}
	}
	if commands < 100 {
		t.Errorf("%d commands were found", commands)
	}
}
