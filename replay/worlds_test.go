package replay_test

import (
	"errors"
	"strings"
	"sync"
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
		{name: "one copy for both", copies: []string{"d0", "d1"}, paths: []string{"d0", "d0"}, wantErr: "for schema d1: it reads d0: let its source find the tables in d1"},
		{name: "swapped", copies: []string{"d0", "d1"}, paths: []string{"d1", "d0"}, wantErr: "for schema d0: it reads d1"},
		{
			name: "views", copies: []string{"d0", "d1"}, paths: []string{"d0", "d1"}, setUp: "DROP TABLE d1.people; CREATE VIEW d1.people AS SELECT * FROM d0.people WHERE id <> 3",
			warning: "reads the copy in schema d1: make sure",
		},
		{name: "nothing is read", copies: []string{"d0", "d1"}, paths: []string{"d0", "d1"}, sql: "SELECT 1", warning: "cannot verify that the engine at"},
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
			var s replay.Statement
			for _, path := range tc.paths {
				opt.Engines = append(opt.Engines, dsn+"&search_path="+path)
				s.Worlds = append(s.Worlds, tc.sql)
			}
			var mu sync.Mutex
			var warnings []string
			opt.Warn = func(text string) { mu.Lock(); warnings = append(warnings, text); mu.Unlock() }
			run, err := player(t, opt).Start(s, 1)
			if err != nil {
				t.Fatal(err)
			}
			defer run.Close()
			_, err = run.Rounds(t.Context(), 2)
			var setup *replay.SetupError
			switch {
			case tc.wantErr == "" && err != nil, tc.wantErr != "" && (!errors.As(err, &setup) || !strings.Contains(err.Error(), tc.wantErr)):
				t.Errorf("got %v, want %q", err, tc.wantErr)
			}
			if got := strings.Join(warnings, "\n"); tc.warning == "" && got != "" || !strings.Contains(got, tc.warning) {
				t.Errorf("warnings %q, want %q", got, tc.warning)
			}
		})
	}
}
