package neighbours_test

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/dpwatch/dpwatch/replay/neighbours"
)

// noted gives options whose notes are collected.
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

// TestStale: copies of another version of the source's tables are told by verify and by refresh.
func TestStale(t *testing.T) {
	t.Parallel()
	o, notes := noted(shop(t))
	create(t, o)
	notes()
	verified(t, o)
	if got := notes(); len(got) > 0 {
		t.Errorf("a fresh set: %q", got)
	}
	run(t, o.Source, `ALTER TABLE accounts ADD extra int NOT NULL DEFAULT 1; ALTER TABLE visits ALTER ms TYPE float8; ALTER TABLE comments DROP body`)
	want := []string{
		"the source has, and the copies of epoch N have not: column extra of accounts, type integer NOT NULL",
		"the source has, and the copies of epoch N have not: column ms of visits, type double precision",
		"the source has no longer, and the copies of epoch N have: column body of comments, type text",
		"the source has no longer, and the copies of epoch N have: column ms of visits, type real",
	}
	for _, step := range []func(){
		func() { verified(t, o) },
		func() {
			if _, err := neighbours.Refresh(t.Context(), o); err != nil {
				t.Fatal(err)
			}
		},
	} {
		step()
		var got []string
		for _, n := range notes() {
			if before, after, ok := strings.Cut(n, "epoch "); ok && strings.HasPrefix(n, "the source") {
				_, after, _ = strings.Cut(after, " ")
				got = append(got, before+"epoch N "+after)
			}
		}
		if !slices.Equal(want, got) {
			t.Errorf("notes\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	verified(t, o)
	if got := notes(); len(got) > 0 {
		t.Errorf("after the refresh: %q", got)
	}
	o.Source = "postgres://u@127.0.0.1:1/x?connect_timeout=2"
	verified(t, o)
	if got := notes(); len(got) != 1 || !strings.Contains(got[0], "could not be seen: connect to neighbours.source") {
		t.Errorf("a source that is away: %q", got)
	}
}

// TestNotCopied: what the copies lack is told when they are made.
func TestNotCopied(t *testing.T) {
	t.Parallel()
	o, notes := noted(shop(t))
	run(t, o.Source, `CREATE FUNCTION touch() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
		CREATE TRIGGER "Touch it" BEFORE UPDATE ON users FOR EACH ROW EXECUTE FUNCTION touch();
		CREATE TRIGGER touch AFTER INSERT ON events FOR EACH ROW EXECUTE FUNCTION touch();
		CREATE RULE nothing AS ON DELETE TO visits DO INSTEAD NOTHING;
		ALTER TABLE visits ENABLE ROW LEVEL SECURITY; CREATE POLICY mine ON visits USING (mail = current_user);
		CREATE FUNCTION total() RETURNS bigint LANGUAGE plpgsql AS 'BEGIN RETURN (SELECT count(*) FROM accounts); END';
		CREATE PUBLICATION all_users FOR TABLE users;
		COMMENT ON TABLE users IS 'people'`)
	create(t, o)
	got := notes()
	for _, want := range []string{
		"not copied: row security policies (mine on public.visits): where they hide rows",
		"not copied: functions that are not in SQL (public.total): one that the shadow database has reads the same rows in every world",
		`not copied: triggers ("Touch it" on public.users, touch on public.events): they act on writes alone`,
		"not copied: rules (nothing on public.visits): they act on writes alone",
		"not copied: publications (all_users of public.users)",
	} {
		if !slices.ContainsFunc(got, func(n string) bool { return strings.HasPrefix(n, want) }) {
			t.Errorf("nothing says %q but\n%s", want, strings.Join(got, "\n"))
		}
	}
	verified(t, o)
}
