package replay_test

import (
	"fmt"
	"testing"

	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
	"github.com/dpwatch/dpwatch/replay"
)

// TestMessages: what the server says beside an answer, and instead of one, is part of the outcome, whichever protocol
// trials use, and each message belongs to its own trial.
func TestMessages(t *testing.T) {
	t.Parallel()
	dsn := shadow(t)
	pgtest.Exec(t, dsn,
		`CREATE FUNCTION note(n bigint) RETURNS float8 LANGUAGE plpgsql VOLATILE AS $$ BEGIN
			RAISE NOTICE 'clipped % rows', n USING DETAIL = 'of d0.people or d1.people'; RETURN n + random(); END $$`,
		`CREATE FUNCTION fail(n bigint) RETURNS float8 LANGUAGE plpgsql VOLATILE AS $$ BEGIN
			RAISE WARNING 'low budget'; RAISE EXCEPTION 'cannot add noise to %', n USING HINT = 'more rows'; END $$`)
	for _, protocol := range []replay.Protocol{replay.Extended, replay.Simple} {
		for _, c := range []struct {
			sql      string
			settings map[string]string
			want     string // with the number of rows
		}{
			{"SELECT public.note(count(*)) FROM %s.people", nil, "clipped %d rows\nVNOTICE\nC00000\nDof copy.people or copy.people\nWPL/pgSQL function note(bigint) line 2 at RAISE\n"},
			{"SELECT public.note(count(*)) FROM %s.people", map[string]string{"client_min_messages": "warning"}, ""},
			{"SELECT public.fail(count(*)) FROM %s.people", nil, "low budget\nVWARNING\nC01000\nWPL/pgSQL function fail(bigint) line 2 at RAISE\ncannot add noise to %d\nVERROR\nCP0001\nHmore rows\nWPL/pgSQL function fail(bigint) line 2 at RAISE"},
		} {
			opt := options(dsn)
			opt.Protocol, opt.Copies = protocol, []string{"d0", "d1"}
			got, err := rounds(t, player(t, opt), replay.Statement{Settings: c.settings}, c.sql, 20)
			if err != nil {
				t.Fatal(err)
			}
			for _, round := range got {
				for w, o := range round {
					want := c.want
					if c.want != "" {
						want = fmt.Sprintf(c.want, 3-w)
					}
					if o.Message != want {
						t.Fatalf("%s trial of %s, %v, in world %d: message %q, want %q", protocol, c.sql, c.settings, w, o.Message, want)
					}
				}
			}
		}
	}
}
