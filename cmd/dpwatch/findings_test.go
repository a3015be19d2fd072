package main

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dpwatch/dpwatch/internal/ledger"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
)

// TestFinding: a violation is explained from the ledger and by the admin API, reproduced with fresh trials, and
// accepted; literals are shown only with --reveal, the evidence in the ledger stays as it is, and what operators did is
// there. A reproduction that does not find an epsilon of 5 against a claim of 0.5 within 500 pairs, and a false alarm
// on the honest query, have a probability of less than 10^-6 each.
func TestFinding(t *testing.T) {
	t.Parallel()
	s := startSidecar(t, "LEDGER")
	conn := s.connect(t)
	exec0(t, conn, "/*dp_epsilon='0.5'*/ SELECT noisy(count(*), 0.2) FROM people WHERE id > $1", -1717171717)
	exec0(t, conn, "/*dp_epsilon='0.5'*/ SELECT noisy(count(*), 4) FROM people")
	var all []decidedAudit
	s.until(t, "two verdicts in the ledger", func() bool {
		all = s.audits(t)
		_, body := s.get(t, "/api/status")
		return len(all) == 2 && all[0].State == "decided" && all[1].State == "decided" && strings.Contains(body, `"unsaved_audits":0,"waiting":0,"lost":0`)
	})
	bad, good := all[0].ID, all[1].ID
	run := func(args ...string) result { return call(t, "", append(args, "--config", s.config)...) }

	const asked = "Clients ran the query 1 times"
	r := run("explain", bad[:6])
	r.want(t, exitDone, "How bad?", "VIOLATION: this query leaks more than the claimed epsilon 0.5", "What gives it away?", "Why, probably?", "Who?", "Units tried: 1; with a violation: 1.", "neighbours.source is not set",
		asked, "What now?", "dpwatch audits reproduce "+bad, "What the audit does not prove", "The claim comes from the client (comment)")
	if strings.Contains(r.stdout, "1717171717") || strings.Contains(r.stdout, "noisy(count(*), 0.2)") {
		t.Errorf("literals without --reveal:\n%s", r.stdout)
	}
	run("explain", bad, "--reveal").want(t, exitDone, "noisy(count(*), 0.2) FROM people WHERE id > $1", `\x99a609fb`, `"d0".people`, `"d1".people`)
	issue := run("explain", bad, "-o", "issue", "--reveal")
	issue.want(t, exitDone, "## What is seen", "noisy(count(*), 0.2) FROM people WHERE id > $1", `"d1".people`, "D0      D1\n", "|o", "What is not claimed")
	if plain := run("explain", bad, "-o", "issue").stdout; !strings.Contains(plain, "Literals are withheld") || strings.Contains(plain, "|o") || strings.Contains(plain, ", 0.2)") || strings.Contains(plain, "values <") {
		t.Errorf("withheld: %s", plain)
	}
	run("explain", good, "-o", "issue").want(t, exitFailure, "has no violation")
	call(t, "", "explain", bad, "--address", s.admin, "-o", "issue").want(t, exitFailure, "-o issue needs --config")
	running := call(t, "", "explain", bad, "--address", s.admin)
	running.want(t, exitDone, "VIOLATION: this query leaks more", asked, "the records of the neighbours are read with --config only")
	call(t, "", "explain", bad, "--address", s.admin, "--reveal").want(t, exitFailure, "--reveal needs --config")
	run("explain", good).want(t, exitDone, "No evidence is not a proof of privacy")
	run("explain", "dead").want(t, exitFailure, `no audit "dead"`)
	s.checkBundle(t, "-1717171717", "99a609fb", pgtest.Connect(t, s.replay).Config().Password)
	signed := s.checkReport(t, bad, good, "-1717171717", "x99a609fb", "noisy(count(*), 0.2)", pgtest.Connect(t, s.replay).Config().Password)

	state := func() (text string) {
		err := pgtest.Connect(t, s.direct).QueryRow(t.Context(), "SELECT string_agg(md5(a::text), ' ' ORDER BY query) FROM dpwatch_ledger.audits a").Scan(&text)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	before := state()
	type reproduction struct {
		Verdict   string
		Confirmed bool
		SQL       any
		Lower     float64 `json:"epsilon_lower"`
		Former    struct {
			Verdict string
			Lower   float64 `json:"epsilon_lower"`
			Trials  int
		}
	}
	reproduce := func(code int, args ...string) (v reproduction) {
		t.Helper()
		r := run(append([]string{"audits", "reproduce", "-o", "json", "--operator", "ann"}, args...)...)
		r.want(t, code)
		if err := json.Unmarshal([]byte(r.stdout), &v); err != nil {
			t.Fatalf("%v\n%s", err, r.stdout)
		}
		return v
	}
	if v := reproduce(exitViolation, bad); !v.Confirmed || v.SQL != nil || v.Lower <= 0.5 || v.Former.Verdict != "violation" || v.Former.Lower != all[0].Report.Lower || v.Former.Trials != all[0].Report.Trials.D0 {
		t.Errorf("%+v; want a confirmed violation beside %+v", v, all[0].Report)
	}
	if v := reproduce(exitDone, good, "--max-trials", "300"); !v.Confirmed || v.Verdict != "no_evidence" {
		t.Errorf("the honest query: %+v", v)
	}
	if v := reproduce(exitInconclusive, bad, "--max-trials", "1"); v.Confirmed {
		t.Errorf("with one pair of trials: %+v", v)
	}
	again := run("audits", "reproduce", "--from", signed, "--operator", "ann", "-o", "json")
	again.want(t, exitViolation)
	var several struct{ Reproductions []reproduction }
	if err := json.Unmarshal([]byte(again.stdout), &several); err != nil || len(several.Reproductions) != 1 || !several.Reproductions[0].Confirmed || several.Reproductions[0].Former.Trials != all[0].Report.Trials.D0 {
		t.Errorf("reproduce --from: %v, %+v", err, several)
	}
	run("audits", "reproduce").want(t, exitFailure, "give the ID of an audit, or --from")
	run("audits", "reproduce", bad, "--from", signed).want(t, exitFailure, "give the ID of an audit, or --from")
	run("audits", "reproduce", bad, "--reveal").want(t, exitViolation, "CONFIRMED by fresh trials", "BEFORE", "NOW", `"d0".people`)
	if after := state(); after != before {
		t.Errorf("the reproductions changed the audits in the ledger")
	}

	examined := run("doctor")
	examined.want(t, exitDone, "clock", "differs by", "2 of 2 are rewritten as the configuration is now", "trials a second of one captured query")
	if strings.Contains(examined.stdout, "1717171717") {
		t.Errorf("literals or parameters in the doctor's output:\n%s", examined.stdout)
	}

	run("audits", "accept", good, "--until", "2099-12-31", "--reason", "why").want(t, exitFailure, "it has no violation (no evidence)")
	run("audits", "accept", bad, "--until", "yesterday", "--reason", "why").want(t, exitFailure, "must be a date such as")
	run("audits", "accept", bad, "--until", "2020-01-31", "--reason", "why").want(t, exitFailure, "has passed already")
	run("audits", "accept", bad, "--until", "2099-12-31").want(t, exitFailure, "--reason is missing")
	run("audits", "accept", bad, "--revoke", "--reason", "why").want(t, exitFailure, "nothing to revoke")
	run("audits", "accept").want(t, exitFailure, "give the ID of an audit, or --list")
	run("audits", "accept", "--list").want(t, exitDone, "no accepted violations")
	run("audits", "accept", bad, "--until", "2099-12-31", "--reason", "OPS-411", "--operator", "ann").want(t, exitDone, "accepted until 2100-01-01T00:00:00Z")
	run("audits", "accept", "--list").want(t, exitDone, bad, "OPS-411", "ann")
	shown := func(open string) func() bool {
		return func() bool {
			_, metrics := s.get(t, "/metrics")
			return strings.Contains(metrics, "\ndpwatch_open_violations "+open+"\n")
		}
	}
	s.until(t, "the acceptance", shown("0"))
	if _, metrics := s.get(t, "/metrics"); !strings.Contains(metrics, "\ndpwatch_accepted_violations 1\n") {
		t.Error("dpwatch_accepted_violations is not 1")
	}
	s.until(t, "the acceptance in the status, which is older than the metrics", func() bool {
		return strings.Contains(call(t, "", "audits", "list", "--address", s.admin).stdout, "(accepted)")
	})
	call(t, "", "status", "--address", s.admin).want(t, exitDone, "1, 1 of them accepted", "2100-01-01T00:00:00Z")
	call(t, "", "audits", "list", "--address", s.admin).want(t, exitDone, "violation (accepted)")
	call(t, "", "explain", bad, "--address", s.admin).want(t, exitDone, "by ann on "+time.Now().UTC().Format("2006"), "OPS-411")
	run("explain", bad).want(t, exitDone, "It is accepted until 2100-01-01T00:00:00Z", "reproduce, by ann", "accept until 2100-01-01T00:00:00Z, by ann")
	if n := strings.Count(s.log.String(), `"msg":"privacy violation"`); n != 1 {
		t.Errorf("%d alerts, want 1", n)
	}
	run("audits", "accept", bad, "--revoke", "--reason", "cancelled").want(t, exitDone, "not accepted any more")
	s.until(t, "the end of the acceptance", shown("1"))
	s.until(t, "the alert again", func() bool { return strings.Count(s.log.String(), `"msg":"privacy violation"`) == 2 })
}

// TestExplainUnits: an explanation says how a unit was chosen, by its pseudonym, and shows the value of the rule only
// with --reveal and its key never.
func TestExplainUnits(t *testing.T) {
	t.Parallel()
	source, shadow := pgtest.Database(t), pgtest.Database(t)
	pgtest.Exec(t, source, `CREATE TABLE users (id text PRIMARY KEY, income float8); INSERT INTO users SELECT 'person' || i, i * 1001 FROM generate_series(1, 10) i`)
	role := "replay_" + strings.ToLower(rand.Text()) // roles are of the whole server
	pgtest.Exec(t, shadow, "CREATE ROLE "+role+" LOGIN PASSWORD 'x'")
	path := file(t, "dpwatch.yaml", fmt.Sprintf(`
proxy: {listen: 127.0.0.1:0, upstream: %q}
shadow: {dsn: %q, d1: [d1_1, d1_2]}
privacy: {protected: [public.users], unit: {table: public.users, key: id}}
neighbours: {source: %q, target: %q, choose: [{rule: largest, columns: public.users.income}, {rule: random}]}
engine: {name: e}
`, upstreamOf(t, source), shadow+"&user="+role+"&password=x", source, shadow))
	call(t, "", "neighbours", "create", "--config", path).want(t, exitDone)
	call(t, "", "migrate", "--config", path).want(t, exitDone)
	store, err := ledger.Open(t.Context(), ledger.Options{DSN: shadow})
	if err != nil {
		t.Fatal(err)
	}
	e, err := store.Acquire(t.Context(), "e")
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	for key, schema := range map[string]string{"aaaaaaaaaaaaaaaa": "d1_1", "bbbbbbbbbbbbbbbb": "d1_2"} {
		err := e.Audits.Save(t.Context(), ledger.Audit{
			Query: ledger.Query{Key: key, Summary: "SELECT", Claim: &ledger.Claim{Epsilon: 1, Source: "rule"}, FirstSeen: time.Now(), LastSeen: time.Now()},
			State: "decided", Verdict: "violation", Trials: 100,
			Violation: fmt.Appendf(nil, `{"first_seen": "2026-01-02T03:04:05Z", "neighbour": %q, "epsilon_claimed": 1, "epsilon_lower": 2, "trials": 100}`, schema),
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	largest := call(t, "", "explain", "a", "--config", path)
	largest.want(t, exitDone, "d1_1: violation", "unit unit-", "chosen by the rule largest public.users.income", "No unit was chosen at random")
	random := call(t, "", "explain", "b", "--config", path)
	random.want(t, exitDone, "chosen by the rule random", "Of 1 units chosen at random, 1 leak: between 2.5 % and 100.0 % of all units at confidence 0.95")
	revealed := call(t, "", "explain", "a", "--config", path, "--reveal")
	revealed.want(t, exitDone, "value 10010")
	if strings.Contains(largest.stdout, "10010") || strings.Contains(largest.stdout+random.stdout+revealed.stdout, "person") {
		t.Errorf("a value or a key is shown:\n%s\n%s\n%s", largest.stdout, random.stdout, revealed.stdout)
	}
}
