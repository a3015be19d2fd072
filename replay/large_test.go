package replay_test

import (
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/internal/longtest"
	"github.com/dpwatch/dpwatch/replay"
)

// TestLargeRows: a row beyond the limit is not read. Its session ends; the other trials, of any world, are still
// executed once each.
func TestLargeRows(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	dsn := shadow(t)
	const rounds = 12
	const sql = `SELECT count(*), repeat('x', CASE WHEN count(*) = 3 THEN 5000000 ELSE 7 END) FROM %s.people`
	for _, protocol := range []replay.Protocol{replay.Extended, replay.Simple} {
		for _, engine := range []bool{false, true} {
			name := string(protocol)
			if engine {
				name += " through an engine"
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				opt := options(dsn)
				opt.Protocol = protocol
				if engine {
					opt.Engines = []string{dsn}
				}
				run, err := player(t, opt).Start(replay.Statement{
					Worlds: []string{strings.ReplaceAll(sql, "%s", "d0"), strings.ReplaceAll(sql, "%s", "d1")}, Simple: protocol == replay.Simple,
				}, 1)
				if err != nil {
					t.Fatal(err)
				}
				defer run.Close()
				got, err := run.Rounds(t.Context(), rounds)
				if err != nil {
					t.Fatal(err)
				}
				for i, round := range got {
					if round[0].SQLState != replay.TooLarge {
						t.Errorf("round %d: D0 gives %q, %d rows", i, round[0].SQLState, len(round[0].Rows))
					}
					if o := round[1]; o.Failed() || len(o.Rows) != 1 || o.Rows[0][0].Num != 2 || o.Rows[0][1].Text != "xxxxxxx" {
						t.Errorf("round %d: D1 gives %+v", i, o)
					}
				}
			})
		}
	}
}
