package main

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/dpwatch/dpwatch/internal/app/records"
)

// samples returns the samples of the coverage, by reason.
func (s *sidecar) samples(t *testing.T) map[string][]records.CoverageSample {
	t.Helper()
	var c records.Coverage
	if status, body := s.get(t, "/api/coverage?since=2h"); status != http.StatusOK || json.Unmarshal([]byte(body), &c) != nil {
		return nil // the ledger is not there yet
	}
	out := map[string][]records.CoverageSample{}
	for _, class := range c.Classes {
		for _, p := range class.Parts {
			if len(p.Samples) > 0 {
				out[p.Reason] = p.Samples
			}
		}
	}
	return out
}

// TestCoverageSamples: each statement that is not audited has a sample that names the object of the statement and says
// what to do about it, whether the relay or the auditor left it out; its constants are nowhere.
func TestCoverageSamples(t *testing.T) {
	t.Parallel()
	s := startSidecar(t, "LEDGER, ADMIN ROLES", "max_statement: 1KiB")
	cfg, err := pgx.ParseConfig(s.dsn())
	if err != nil {
		t.Fatal(err)
	}
	cfg.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol
	const secret = "SECRETQXZ"
	setup, err := pgx.Connect(t.Context(), s.direct)
	if err != nil {
		t.Fatal(err)
	}
	defer setup.Close(t.Context())
	exec0(t, setup, "CREATE FUNCTION unlisted(text) RETURNS text LANGUAGE sql VOLATILE AS 'SELECT $1'")
	type want struct{ shape, detail, remedy string }
	wants := map[string]want{}
	for _, one := range []struct {
		reason, application string
		statements          []string
		want                want
	}{
		{
			"unknown_function", "tableau",
			[]string{"SELECT unlisted('" + secret + "') FROM people WHERE id < 918273645"},
			want{"SELECT unlisted(?) FROM people WHERE id < ?", "unlisted", "claims.safe_functions"},
		},
		{
			"bad_claim", "dbt",
			[]string{"/*dp_epsilon='-918273645'*/ SELECT noisy(count(*), 1) FROM people"},
			want{"SELECT noisy(count(*), ?) FROM people", "", "epsilon"},
		},
		{
			"too_long", "report",
			[]string{"SELECT count(*) FROM people WHERE '" + strings.Repeat(secret, 200) + "' <> ''"},
			want{"SELECT count(*) FROM people WHERE ? <> ?", "bytes", "proxy.max_statement"},
		},
		{
			"standard_conforming_strings", "legacy",
			[]string{"SET standard_conforming_strings = off", `SELECT count(*) FROM people WHERE 'it\'s ` + secret + `' <> 'x'`},
			want{"", "", `ALTER ROLE "postgres" SET standard_conforming_strings = on`},
		},
		{
			"arguments", "etl",
			[]string{"PREPARE p (text) AS SELECT count(*) FROM people WHERE $1 <> ''", "EXECUTE p (lower('" + secret + "'))"},
			want{"", "", "plain literals in EXECUTE"},
		},
	} {
		cfg.RuntimeParams["application_name"] = one.application
		conn, err := pgx.ConnectConfig(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		for _, sql := range one.statements {
			exec0(t, conn, sql)
		}
		_ = conn.Close(t.Context())
		wants[one.reason] = one.want
		s.until(t, "a sample of "+one.reason, func() bool {
			for _, x := range s.samples(t)[one.reason] {
				w := one.want
				if x.Application == one.application {
					if w.shape != "" && x.Shape != w.shape || !strings.Contains(x.Detail, w.detail) || !strings.Contains(x.Remedy, w.remedy) || x.User != "postgres" || x.Text != "" {
						t.Fatalf("%s: %+v, want %+v", one.reason, x, w)
					}
					return true
				}
			}
			return false
		})
	}
	s.token = s.viewer
	_, page := s.get(t, "/coverage?since=1h")
	_, api := s.get(t, "/api/coverage")
	command := call(t, "", "coverage", "--config", s.config).stdout
	for reason := range wants {
		if title := strings.ReplaceAll(reason, "_", " "); !strings.Contains(page, "Examples: "+title) || !strings.Contains(command, title+", for example:") {
			t.Errorf("no examples of %s:\n%s\n%s", reason, page, command)
		}
	}
	for where, text := range map[string]string{"page": page, "API": api, "command": command, "log": s.log.String()} {
		if strings.Contains(text, secret) || strings.Contains(text, "918273645") {
			t.Errorf("the %s has a constant of a statement:\n%s", where, text)
		}
	}
}
