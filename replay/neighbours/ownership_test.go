package neighbours_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dpwatch/dpwatch/internal/pgtemp/pgtest"
	"github.com/dpwatch/dpwatch/replay/neighbours"
)

// wiki is an application in which user 7 locked, approved, edited and moderated what belongs to others.
const wiki = `
CREATE TABLE users (id int PRIMARY KEY, email text UNIQUE, manager_id int REFERENCES users, bio text);
INSERT INTO users SELECT i, 'u' || i || '@example.org', CASE WHEN i BETWEEN 8 AND 10 THEN 7 END FROM generate_series(0, 30) i;
CREATE TABLE profiles (id int PRIMARY KEY, user_id int UNIQUE REFERENCES users);
INSERT INTO profiles SELECT 100 + i, i FROM generate_series(1, 30) i;
CREATE TABLE pages (id int PRIMARY KEY, owner_id int REFERENCES users, locked_by int REFERENCES users, edited_by int NOT NULL DEFAULT 0 REFERENCES users,
	approved_by int NOT NULL REFERENCES users, moderated_by int REFERENCES profiles, closed boolean, closed_by int REFERENCES users, CHECK (closed_by IS NOT NULL OR NOT closed), team int[]);
INSERT INTO pages SELECT i, 1 + i % 5, CASE i WHEN 1 THEN 7 END, CASE i WHEN 2 THEN 7 ELSE 1 END, CASE i WHEN 3 THEN 7 ELSE 2 END, CASE i WHEN 4 THEN 107 END, i = 5, CASE WHEN i IN (5, 6) THEN 7 END,
	CASE i WHEN 8 THEN ARRAY[3, 7, 4, NULL] END FROM generate_series(1, 10) i;
CREATE TABLE comments (id int PRIMARY KEY, page_id int REFERENCES pages, user_id int NOT NULL REFERENCES users);
INSERT INTO comments SELECT i, 1 + i % 10, 1 + i % 30 FROM generate_series(1, 120) i;
CREATE TABLE likes (profile_id int NOT NULL REFERENCES profiles, comment_id int NOT NULL REFERENCES comments, PRIMARY KEY (profile_id, comment_id));
INSERT INTO likes SELECT 101 + i % 30, 1 + i % 120 FROM generate_series(1, 120) i;
CREATE TABLE drafts (id int PRIMARY KEY, created_by int REFERENCES users);
INSERT INTO drafts SELECT i, 7 FROM generate_series(1, 3) i;
CREATE TABLE blocks (id int PRIMARY KEY, draft_id int REFERENCES drafts);
INSERT INTO blocks SELECT i, 1 + i % 3 FROM generate_series(1, 9) i`

// without returns the options for a set without user 7 of a database that the statements make.
func without(t *testing.T, tables []string, statements ...string) neighbours.Options {
	t.Helper()
	o := bare(pgtest.Database(t), pgtest.Database(t), tables...)
	run(t, o.Source, statements...)
	o.Unit, o.D1 = neighbours.Unit{Table: table(tables[0]), Key: []string{"id"}}, []string{"d1"}
	o.Choose = []neighbours.Choice{{Rule: neighbours.Smallest, K: 1, Columns: []neighbours.Column{{Table: table(tables[0]), Name: "rank"}}}}
	return o
}

// TestActs: who did something with a row does not own what hangs on it. The cell has the value that the table allows for
// somebody who is gone, by both methods, and verify finds one unit.
func TestActs(t *testing.T) {
	t.Parallel()
	for _, method := range []neighbours.Method{neighbours.Copy, neighbours.View} {
		t.Run(string(method), func(t *testing.T) {
			t.Parallel()
			drop := ""
			if method == neighbours.View { // which refuses what depends on defaults and constraints
				drop = "ALTER TABLE pages DROP edited_by, DROP closed_by, DROP team"
			}
			o := without(t, []string{"public.users", "public.profiles", "public.pages", "public.comments", "public.likes", "public.drafts", "public.blocks"},
				wiki, "ALTER TABLE users ADD rank int; UPDATE users SET rank = CASE id WHEN 7 THEN 0 ELSE 1 END", drop)
			o.Method = method
			if method == neighbours.Copy {
				o.Paths = []neighbours.Path{{Table: table("public.pages"), Columns: []string{"team[]"}, To: table("public.users"), Act: true}}
			}
			var notes []string
			o.Note = func(text string) { notes = append(notes, text) }
			create(t, o)
			d := verified(t, o)[0]
			columns := "id, owner_id, locked_by, approved_by, moderated_by"
			want := []string{
				"pages: (1,2,,2,)", "pages: (10,1,,2,)", "pages: (2,3,,2,)", "pages: (4,5,,2,)", "pages: (5,1,,2,)", "pages: (6,2,,2,)", "pages: (7,3,,2,)", "pages: (8,4,,2,)", "pages: (9,5,,2,)",
			}
			if method == neighbours.Copy {
				columns += ", edited_by, closed_by, team"
				want = []string{ // page 3 cannot be approved by nobody, and page 5 not be closed by nobody
					"pages: (1,2,,2,,1,,)", "pages: (10,1,,2,,1,,)", "pages: (2,3,,2,,0,,)", "pages: (4,5,,2,,1,,)", "pages: (6,2,,2,,1,,)", "pages: (7,3,,2,,1,,)",
					`pages: (8,4,,2,,1,,"{3,4,NULL}")`, "pages: (9,5,,2,,1,,)",
				}
			}
			want = append(want, "blocks: 9", "comments: 116", "comments of others: 0", "drafts: 3", "drafts that name the unit: 0", "likes: 116", "managed: 0")
			got := lines(t, o.Target, fmt.Sprintf(`SELECT 'pages: ' || ROW(%s)::text FROM d1.pages UNION ALL SELECT 'comments: ' || count(*) FROM d1.comments
				UNION ALL SELECT 'comments of others: ' || count(*) FROM d0.comments a LEFT JOIN d1.comments b USING (id) WHERE b.id IS NULL AND a.user_id <> 7
				UNION ALL SELECT 'likes: ' || count(*) FROM d1.likes UNION ALL SELECT 'blocks: ' || count(*) FROM d1.blocks UNION ALL SELECT 'managed: ' || count(*) FROM d1.users WHERE manager_id = 7
				UNION ALL SELECT 'drafts: ' || count(*) FROM d1.drafts UNION ALL SELECT 'drafts that name the unit: ' || count(*) FROM d1.drafts WHERE created_by = 7`, columns))
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
			if len(d.Warnings) > 0 {
				t.Errorf("warnings %q", d.Warnings)
			}
			for _, part := range []string{"rows of public.drafts belong to no unit: created_by names", "rows of public.blocks belong to no unit: they reference public.drafts"} {
				if !slices.ContainsFunc(notes, func(n string) bool { return strings.HasPrefix(n, part) }) {
					t.Errorf("no note %q in %q", part, notes)
				}
			}
		})
	}
}

// TestWhatD1Lacks: columns without a foreign key that name the removed unit, and rows of others that go with it, are
// counted by create and verify until the configuration declares them.
func TestWhatD1Lacks(t *testing.T) {
	t.Parallel()
	tables := []string{"public.users", "public.comments", "public.replies", "public.notes", "public.orders", "public.events"}
	o := without(t, tables, `CREATE TABLE users (id int PRIMARY KEY, email text UNIQUE, rank int); INSERT INTO users SELECT i, 'u' || i || '@example.org', CASE i WHEN 7 THEN 0 ELSE 1 END FROM generate_series(1, 50) i;
		CREATE TABLE comments (id int PRIMARY KEY, user_id int REFERENCES users); INSERT INTO comments SELECT i, 1 + i % 50 FROM generate_series(1, 200) i;
		CREATE TABLE replies (id int PRIMARY KEY, comment_id int REFERENCES comments, author_user_id bigint); INSERT INTO replies SELECT i, 1 + i % 200, 1 + i % 49 FROM generate_series(1, 400) i;
		CREATE TABLE notes (id int PRIMARY KEY, comment_id int REFERENCES comments, record_type text, record_id int);
		INSERT INTO notes SELECT i, 1 + i % 200, CASE i % 2 WHEN 0 THEN 'User' ELSE 'Comment' END, 1 + i % 50 FROM generate_series(1, 100) i;
		CREATE TABLE orders (id int PRIMARY KEY, user_id int REFERENCES users, guest_email text); INSERT INTO orders SELECT i, 1 + i % 50, 'u' || i % 60 || '@example.org' FROM generate_series(1, 100) i;
		CREATE TABLE events (id int PRIMARY KEY, order_id int REFERENCES orders, data jsonb, secret bytea); INSERT INTO events SELECT i, i, jsonb_build_object('actor', jsonb_build_object('user_id', 1 + i * 3 % 50)) FROM generate_series(1, 100) i;
		ANALYZE`)
	o.Note = nil
	p, err := neighbours.MakePlan(t.Context(), o, false)
	if err != nil || p.Err() != nil {
		t.Fatal(err, p.Err())
	}
	named := []string{"replies.author_user_id", "notes.record_id", "orders.guest_email", "events.data->actor->user_id"}
	for _, column := range named {
		if !slices.ContainsFunc(p.Notes, func(n string) bool { return strings.HasPrefix(n, "column public."+column+" names units") }) {
			t.Errorf("the plan does not name %s: %q", column, p.Notes)
		}
	}
	var notes []string
	o.Note = func(text string) { notes = append(notes, text) }
	create(t, o)
	o.Note = nil
	report, err := neighbours.Verify(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	d := report.Pairs[0]
	for _, want := range []string{
		"table replies: 8 cells of author_user_id name the unit", "table notes: 2 cells of record_id name the unit", "table orders: 2 cells of guest_email name the unit",
		"table events: 2 cells of data->actor->user_id name the unit", "9 of the 19 rows that it lacks name only other persons (replies 7 of 8, by comment_id -> comments, events 2 of 2, by order_id -> orders)",
		"columns: [guest_email], to: public.users, on: [email]} - {table: public.orders, columns: [user_id], to: public.users} or,",
	} {
		if !slices.ContainsFunc(d.Faults, func(f string) bool { return strings.Contains(f, want) }) || !slices.ContainsFunc(notes, func(n string) bool { return strings.Contains(n, want) }) {
			t.Errorf("no fault %q in %q, or not noted: %q", want, d.Faults, notes)
		}
	}
	i := slices.IndexFunc(d.Tables, func(l neighbours.TableLoss) bool { return l.Table == "events" })
	if i < 0 || d.Tables[i].Lacks != 2 || d.Tables[i].Left != 2 || d.Tables[i].Looked != 3 || !slices.Equal(d.Tables[i].NotLooked, []string{"secret (bytea, perhaps encrypted)"}) {
		t.Errorf("tables %+v", d.Tables)
	}
	_, members, err := neighbours.List(t.Context(), o)
	if err != nil || !members[0].Open() || len(members[0].Names) != 4 || members[0].Others != 9 {
		t.Errorf("member %+v, %v", members, err)
	}
	// The lines that the advice has make it right.
	users := table("public.users")
	path := func(of, column string) neighbours.Path {
		return neighbours.Path{Table: table("public." + of), Columns: []string{column}, To: users}
	}
	o.Paths = []neighbours.Path{path("replies", "author_user_id"), path("notes", "record_id"), path("orders", "guest_email"), path("orders", "user_id"), path("events", "data->actor->user_id")}
	o.Paths[1].Where, o.Paths[2].On = "record_type = 'User'", []string{"email"}
	if _, err := neighbours.Refresh(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if d := verified(t, o)[0]; len(d.Warnings) > 0 || d.Removed["replies"] != 9 || d.Removed["notes"] != 2 || d.Removed["orders"] != 4 || d.Removed["events"] != 2 {
		t.Errorf("removed %v, warnings %q", d.Removed, d.Warnings)
	}
}

// TestPathsThatCannotBeFollowed: paths are checked at the source before anything is copied.
func TestPathsThatCannotBeFollowed(t *testing.T) {
	t.Parallel()
	o := without(t, []string{"public.users", "public.visits"}, `CREATE TABLE users (id int PRIMARY KEY, email text, rank int);
		CREATE TABLE visits (at date, mail text, user_id int REFERENCES users, data jsonb, members uuid[], who varchar, nobody boolean)`)
	for _, tc := range []struct {
		path neighbours.Path
		want string // "" = it can be followed
	}{
		{neighbours.Path{Columns: []string{"at"}}, "column at of type date cannot be compared with id of type integer"},
		{neighbours.Path{Columns: []string{"nobody"}, On: []string{"email"}}, "cannot be compared"},
		{neighbours.Path{Columns: []string{"members[]"}}, "column members of type element of uuid[] cannot be compared with id"},
		{neighbours.Path{Columns: []string{"mail[]"}, On: []string{"email"}}, "is no array"},
		{neighbours.Path{Columns: []string{"mail->id"}}, "is no JSON"},
		{neighbours.Path{Columns: []string{"data->likes[]->id"}, Act: true}, "an act cannot be one of an array in JSON"},
		{neighbours.Path{Columns: []string{"who"}, Where: "mail ="}, "where is no condition on rows of public.visits"},
		{neighbours.Path{Columns: []string{"who"}, Where: "kind = 'User'"}, "where is no condition on rows of public.visits"},
		{neighbours.Path{Columns: []string{"gone"}, Ignore: "tested"}, `has no column "gone"`},
		{neighbours.Path{Columns: []string{"who"}, Where: "mail IS NULL -- with a comment"}, ""},
		{neighbours.Path{Columns: []string{"mail"}, On: []string{"email"}}, ""},
		{neighbours.Path{Columns: []string{"data->likes[]->id"}}, ""},
		{neighbours.Path{Columns: []string{"members[]"}, On: []string{"email"}}, ""},
	} {
		one := o
		tc.path.Table = table("public.visits")
		if tc.path.Ignore == "" {
			tc.path.To = table("public.users")
		}
		one.Paths = []neighbours.Path{tc.path}
		fault, unread := neighbours.CheckSource(t.Context(), one)
		if unread != nil || (fault == nil) != (tc.want == "") || fault != nil && !strings.Contains(fault.Error(), tc.want) {
			t.Errorf("%+v: %v, %v, want %q", tc.path, fault, unread, tc.want)
		}
	}
	run(t, o.Source, "CREATE ROLE reader_of_paths LOGIN PASSWORD 'x'", "GRANT SELECT ON users TO reader_of_paths")
	o.Source += "&user=reader_of_paths&password=x"
	var rights *neighbours.MissingRights
	if fault, unread := neighbours.CheckSource(t.Context(), o); unread != nil || !errors.As(fault, &rights) || !slices.Equal(rights.Grants, []string{"GRANT SELECT ON public.visits TO reader_of_paths"}) {
		t.Errorf("rights: %v, %v", fault, unread)
	}
}

// TestBorrowedRows: rows that more than two units own make no unit the one with the most rows.
func TestBorrowedRows(t *testing.T) {
	t.Parallel()
	o := without(t, []string{"public.users", "public.notes", "public.rooms"}, `CREATE TABLE users (id int PRIMARY KEY, rank int); INSERT INTO users SELECT i, i FROM generate_series(1, 20) i;
		CREATE TABLE notes (id int PRIMARY KEY, user_id int REFERENCES users); INSERT INTO notes SELECT i, CASE WHEN i < 9 THEN 7 ELSE i END FROM generate_series(1, 20) i;
		CREATE TABLE rooms (id int PRIMARY KEY, members int[]); INSERT INTO rooms SELECT i, ARRAY[1, 2, 3, 4] FROM generate_series(1, 100) i`)
	o.Choose = []neighbours.Choice{{Rule: neighbours.MostRows, K: 2}}
	o.D1 = []string{"d1_1", "d1_2"}
	o.Paths = []neighbours.Path{{Table: table("public.rooms"), Columns: []string{"members[]"}, To: table("public.users")}}
	o.Note = nil
	create(t, o)
	verified(t, o)
	_, members, err := neighbours.List(t.Context(), o)
	if err != nil || members[0].Key[0] != "7" || members[0].Why != "most_rows: 9 rows" || members[0].Shared != 0 || members[1].Key[0] != "9" {
		t.Errorf("members %+v, %v", members, err)
	}
	o.Choose = []neighbours.Choice{{Rule: neighbours.Smallest, K: 2, Columns: []neighbours.Column{{Table: table("public.users"), Name: "rank"}}}, {Rule: neighbours.MostRows, K: 1}}
	o.D1 = append(o.D1, "d1_3")
	if _, err := neighbours.Refresh(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	_, members, err = neighbours.List(t.Context(), o)
	if err != nil || members[0].Shared != 100 || !slices.Equal(members[0].Large, []string{"public.rooms"}) || members[2].Key[0] != "7" ||
		!slices.ContainsFunc(members[0].Remarks(), func(s string) bool {
			return strings.HasPrefix(s, "100 of the 101 rows that it lacks belong to more than two units")
		}) {
		t.Errorf("members %+v, %v", members, err)
	}
}
