package replay_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
	"github.com/dpwatch/dpwatch/internal/withheld"
	"github.com/dpwatch/dpwatch/replay"
)

// TestErrorsWithholdMessages: messages raised by the engine's functions may quote rows. The error of a replay has the
// SQLSTATE, and the message only with Reveal; for every code that is an error and not an outcome, in every protocol.
func TestErrorsWithholdMessages(t *testing.T) {
	t.Parallel()
	dsn := shadow(t)
	pgtest.Exec(t, dsn, `CREATE FUNCTION quoting(value text, state text) RETURNS text LANGUAGE plpgsql AS $$ BEGIN
		RAISE EXCEPTION 'row %', value USING ERRCODE = state, DETAIL = value, HINT = value; END $$`)
	p := player(t, options(dsn))
	for _, state := range []string{"42501", "42P01", "42883", "25006", "53100", "58030", "57P03", "08006"} {
		for _, simple := range []bool{false, true} {
			_, err := rounds(t, p, replay.Statement{Simple: simple}, fmt.Sprintf(`SELECT quoting('MRN' || max(id) || 'X', '%s') FROM %%s.people`, state), 1)
			if err == nil {
				t.Errorf("%s: no error", state)
				continue
			}
			text := err.Error() + fmt.Sprintf("%v %+v %#v %q", err, err, err, err)
			if strings.Contains(text, "MRN") || !strings.Contains(err.Error(), "SQLSTATE "+state) || !strings.Contains(withheld.Reveal(err), "row MRN") {
				t.Errorf("%s: %s; revealed %s", state, text, withheld.Reveal(err))
			}
		}
	}
}
