package neighbours_test

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/dpwatch/dpwatch/internal/longtest"
	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
	"github.com/dpwatch/dpwatch/replay/neighbours"
)

// noted returns options that collect notes.
func noted(o neighbours.Options) (neighbours.Options, func() []string) {
	var mu sync.Mutex
	var notes []string
	o.Note = func(text string) { mu.Lock(); notes = append(notes, text); mu.Unlock() }
	return o, func() []string {
		mu.Lock()
		defer mu.Unlock()
		out := notes
		notes = nil
		return out
	}
}

// TestStale: copies of another version of the source's tables are reported by verify and by refresh.
func TestStale(t *testing.T) {
	longtest.Skip(t)
	t.Parallel()
	o, notes := noted(shop(t))
	create(t, o)
	verified(t, o)
	notes()
	run(t, o.Source, `ALTER TABLE accounts ADD extra int NOT NULL DEFAULT 1; ALTER TABLE visits ALTER ms TYPE float8; ALTER TABLE comments DROP body;
		CREATE INDEX ON visits (mail); ALTER TYPE mood ADD VALUE 'angry'; SELECT nextval('numbers')`)
	report, err := neighbours.Verify(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if want := "type public.mood of the shadow database differs from the source's"; len(report.Faults) != 1 || !strings.Contains(report.Faults[0], want) {
		t.Errorf("faults %q, want %q", report.Faults, want)
	}
	run(t, o.Target, "ALTER TYPE mood ADD VALUE 'angry'")
	if report, err = neighbours.Verify(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"the source has, and d0 has not: column accounts.extra is number 6, type integer", "d0 has, and the source has not: column comments.body is number 4, type text",
		"the source has, and d0 has not: index visits_mail_idx", "run `dpwatch neighbours create --replace`",
	} {
		if !slices.ContainsFunc(report.Faults, func(f string) bool { return strings.Contains(f, want) }) {
			t.Errorf("faults\n%s\ndo not hold %q", strings.Join(report.Faults, "\n"), want)
		}
	}
	if _, err := neighbours.Refresh(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	got := notes()
	for _, want := range []string{
		"have not: column extra of accounts, type integer NOT NULL", "have not: column ms of visits, type double precision", "have: column body of comments, type text", "have: column ms of visits, type real",
	} {
		if !slices.ContainsFunc(got, func(n string) bool { return strings.HasSuffix(n, want) }) {
			t.Errorf("notes\n%s\ndo not hold %q", strings.Join(got, "\n"), want)
		}
	}
	verified(t, o)
	o.Source = "postgres://u@127.0.0.1:1/x?connect_timeout=2"
	if report, err = neighbours.Verify(t.Context(), o); err != nil || len(report.Faults) > 0 || !strings.Contains(report.NotCompared, "connect to neighbours.source") {
		t.Errorf("a source that is away: %+v, %v", report, err)
	}
}

// TestNotCopied: a note names objects that are not copied.
func TestNotCopied(t *testing.T) {
	t.Parallel()
	o, notes := noted(shop(t))
	run(t, o.Source, `CREATE FUNCTION touch() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
		CREATE TRIGGER "Touch it" BEFORE UPDATE ON users FOR EACH ROW EXECUTE FUNCTION touch();
		CREATE TRIGGER touch AFTER INSERT ON events FOR EACH ROW EXECUTE FUNCTION touch();
		CREATE RULE nothing AS ON DELETE TO visits DO INSTEAD NOTHING;
		ALTER TABLE visits ENABLE ROW LEVEL SECURITY; CREATE POLICY mine ON visits USING (mail = current_user);
		CREATE FUNCTION total() RETURNS bigint LANGUAGE plpgsql AS 'BEGIN RETURN (SELECT count(*) FROM accounts); END';
		CREATE PUBLICATION all_users FOR TABLE users; CREATE TABLE kinds (id int PRIMARY KEY);
		ALTER TABLE users ADD kind int CONSTRAINT users_kind REFERENCES kinds; ALTER TABLE accounts ADD kind int CONSTRAINT accounts_kind REFERENCES kinds;
		COMMENT ON TABLE users IS 'people'`)
	create(t, o)
	got := notes()
	for _, want := range []string{
		"not copied: row security policies (mine on public.visits): where they hide rows",
		"not copied: functions that are not in SQL (public.total): one that the shadow database has reads the same rows in every world",
		`not copied: triggers ("Touch it" on public.users, touch on public.events): they act on writes alone`,
		"not copied: rules (nothing on public.visits): they act on writes alone",
		"not copied: publications (all_users of public.users)",
		"not copied: foreign keys to tables that are not (users_kind of public.users to public.kinds, accounts_kind of public.accounts to public.kinds)",
	} {
		if !slices.ContainsFunc(got, func(n string) bool { return strings.HasPrefix(n, want) }) {
			t.Errorf("nothing says %q but\n%s", want, strings.Join(got, "\n"))
		}
	}
	verified(t, o)
}

// TestViewsLeftOut: a view that reads an unlisted table is left out, and so are the views over it.
func TestViewsLeftOut(t *testing.T) {
	t.Parallel()
	o, notes := noted(bare(pgtest.Database(t), pgtest.Database(t), "public.people"))
	run(t, o.Source, "CREATE TABLE people (id int PRIMARY KEY)", "INSERT INTO people VALUES (1), (2)", "CREATE TABLE secrets (id int)",
		"CREATE VIEW direct AS SELECT p.id FROM people p JOIN secrets s USING (id)", "CREATE VIEW above AS SELECT id FROM direct",
		"CREATE VIEW mixed AS SELECT p.id FROM people p JOIN above USING (id)", "CREATE VIEW kept AS SELECT id FROM people")
	create(t, o)
	verified(t, o)
	got := slices.DeleteFunc(notes(), func(n string) bool { return !strings.HasPrefix(n, "view ") })
	want := []string{
		"view direct is not copied: it reads public.secrets, which is neither protected nor public",
		"view above is not copied: it reads public.direct, which is neither protected nor public",
		"view mixed is not copied: it reads public.above, which is neither protected nor public",
	}
	if !slices.Equal(got, want) {
		t.Errorf("notes\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if views := lines(t, o.Target, "SELECT relname::text FROM pg_class WHERE relkind = 'v' AND relnamespace = 'd0'::regnamespace"); !slices.Equal(views, []string{"kept"}) {
		t.Errorf("views %q, want kept alone", views)
	}
}
