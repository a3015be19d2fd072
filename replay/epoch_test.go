package replay_test

import (
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
)

// TestEpoch: the epoch of the copies changes with the tables and their rows, and not with the files alone. Rows that
// change in place are an error until they are what they were.
func TestEpoch(t *testing.T) {
	t.Parallel()
	dsn := shadow(t)
	p := player(t, options(dsn))
	epoch := func() (string, error) {
		p.Look()
		now, err := p.Epoch(t.Context(), []string{"d0", "d1"})
		if again, err := p.Epoch(t.Context(), []string{"d0", "d1"}); err == nil && again != now {
			t.Errorf("%s and %s without a change", now, again)
		}
		return now, err
	}
	before, err := epoch()
	if err != nil {
		t.Fatal(err)
	}
	const same, other, inPlace = "the same", "another one", "an error"
	for _, step := range []struct{ sql, want string }{
		{"VACUUM FULL d0.people", same},
		{"CREATE TABLE kept AS TABLE d0.people; BEGIN; TRUNCATE d0.people; INSERT INTO d0.people TABLE kept ORDER BY id DESC; COMMIT", same},
		{"BEGIN; DELETE FROM d0.people; ROLLBACK", same},
		{"INSERT INTO d0.people (id) VALUES (-1)", inPlace},
		{"DELETE FROM d0.people WHERE id = -1", same},
		{"UPDATE d1.people SET grp = concat(grp, 'x')", inPlace},
		{"BEGIN; TRUNCATE d1.people; INSERT INTO d1.people TABLE kept; COMMIT", other},
		{"CREATE TABLE d1.other (id int)", other},
		{"CREATE TABLE d1.anew (LIKE d1.people); INSERT INTO d1.anew TABLE d1.people; DROP TABLE d1.people CASCADE; ALTER TABLE d1.anew RENAME TO people", other},
	} {
		pgtest.Exec(t, dsn, step.sql)
		got := same
		switch now, err := epoch(); {
		case err != nil && strings.Contains(err.Error(), "their rows have changed in place"):
			got = inPlace
		case err != nil:
			t.Fatal(err)
		case now != before:
			got, before = other, now
		}
		if got != step.want {
			t.Errorf("%s: the epoch is %s, want %s", step.sql, got, step.want)
		}
	}
}
