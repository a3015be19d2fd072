package replay_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/internal/longtest"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
	"github.com/dpwatch/dpwatch/replay"
)

// Each engine must read its own world's copy. The engines here are the database itself, by search_path.
func TestEachEngineReadsItsCopy(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	for _, tc := range []struct {
		name, setUp, sql string
		copies, paths    []string
		wantErr, warning string
	}{
		{
			name: "right", copies: []string{"d0", "d1", "d2"}, paths: []string{"d0", "d1", "d2"},
			setUp: "CREATE SCHEMA d2; CREATE TABLE d2.people AS SELECT * FROM d1.people",
		},
		{name: "one copy for both", copies: []string{"d0", "d1"}, paths: []string{"d0", "d0"}, wantErr: "those on D1 (schema d1), which run through the engine %, read d0.people, a copy of another world: let its source find the tables in d1"},
		{name: "swapped", copies: []string{"d0", "d1"}, paths: []string{"d1", "d0"}, wantErr: "read d1.people, a copy of another world"},
		{name: "the original", copies: []string{"d0", "d1"}, paths: []string{"public", "public"}, setUp: "CREATE TABLE people AS TABLE d0.people", wantErr: "read public.people, the original of a copy"},
		{
			name: "views", copies: []string{"d0", "d1"}, paths: []string{"d0", "d1"}, setUp: "DROP TABLE d1.people; CREATE VIEW d1.people AS SELECT * FROM d0.people WHERE id <> 3",
			warning: "the copies in d1 are views that read d0.people",
		},
		{name: "nothing is read", copies: []string{"d0", "d1"}, paths: []string{"d0", "d1"}, sql: "SELECT 1", wantErr: "read no table: make sure that"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			dsn := shadow(t)
			if tc.setUp != "" {
				pgtest.Exec(t, dsn, tc.setUp)
			}
			if tc.sql == "" {
				tc.sql = "SELECT count(*) FROM people"
			}
			opt := options(dsn)
			opt.Copies = tc.copies
			s := replay.Statement{Settings: clientSettings}
			for _, path := range tc.paths {
				opt.Engines = append(opt.Engines, dsn+"&search_path="+path)
				s.Worlds = append(s.Worlds, tc.sql)
			}
			run, err := player(t, opt).Start(s, 1)
			if err != nil {
				t.Fatal(err)
			}
			defer run.Close()
			reads, err := run.Reads(t.Context())
			cfg := pgtest.Connect(t, dsn).Config()
			wantErr := strings.ReplaceAll(tc.wantErr, "%", fmt.Sprintf("%s at %s:%d", cfg.Database, cfg.Host, cfg.Port))
			var fault *replay.ReadsError
			switch {
			case tc.wantErr == "" && err != nil, tc.wantErr != "" && (!errors.As(err, &fault) || !strings.Contains(err.Error(), wantErr)):
				t.Errorf("got %v, want %q", err, wantErr)
			}
			if tc.warning == "" && reads.Unverified != "" || !strings.Contains(reads.Unverified, tc.warning) {
				t.Errorf("unverified %q, want %q", reads.Unverified, tc.warning)
			}
		})
	}
}
