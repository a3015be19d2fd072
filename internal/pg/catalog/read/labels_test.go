package read_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dpwatch/dpwatch/internal/pg/catalog"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
	"github.com/dpwatch/dpwatch/rewrite"
)

// SECURITY LABELs on columns and roles are read, by any role. The server has no label provider, so the test writes the
// rows that the statement writes. Labels on other objects are not read.
func TestLabels(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	pgtest.Exec(t, dsn, `
		CREATE SCHEMA app; CREATE TABLE app."Survey" (id int, dropped int, answer int); ALTER TABLE app."Survey" DROP COLUMN dropped;
		CREATE ROLE dpwatch_label_masked;
		INSERT INTO pg_seclabel (objoid, classoid, objsubid, provider, label) VALUES
			('app."Survey"'::regclass, 'pg_class'::regclass, 3, 'anon', 'MASKED WITH FUNCTION anon.ldp_grrm(answer, 1.0, 2)'),
			('app."Survey"'::regclass, 'pg_class'::regclass, 2, 'anon', 'of a dropped column'),
			('app."Survey"'::regclass, 'pg_class'::regclass, 0, 'anon', 'of a table'),
			('app'::regnamespace, 'pg_namespace'::regclass, 0, 'anon', 'TRUSTED');
		INSERT INTO pg_shseclabel (objoid, classoid, provider, label) VALUES ('dpwatch_label_masked'::regrole, 'pg_authid'::regclass, 'anon', 'MASKED')`)
	t.Cleanup(func() {
		pgtest.Exec(t, dsn, "DELETE FROM pg_shseclabel WHERE objoid = 'dpwatch_label_masked'::regrole; DROP ROLE dpwatch_label_masked")
	})
	want := []catalog.Label{
		{Provider: "anon", Role: "dpwatch_label_masked", Text: "MASKED"},
		{Provider: "anon", Table: rewrite.Table{Schema: "app", Name: "Survey"}, Column: "answer", Text: "MASKED WITH FUNCTION anon.ldp_grrm(answer, 1.0, 2)"},
	}
	if diff := cmp.Diff(want, contents(t, dsn).Labels); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	ordinary := pgtest.Connect(t, dsn)
	if _, err := ordinary.Exec(t.Context(), "SET ROLE dpwatch_label_masked"); err != nil {
		t.Fatal(err)
	}
	for _, list := range []string{"pg_seclabel", "pg_shseclabel"} {
		if _, err := ordinary.Exec(t.Context(), "SELECT * FROM "+list); err != nil {
			t.Errorf("an ordinary role cannot read %s: %v", list, err)
		}
	}
}
